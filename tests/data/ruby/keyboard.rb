# frozen_string_literal: true

require 'set'

# Input and output.
module App
  # A row of keys.
  class Input::Keyboard < Base
    MAX_TRIES = 3
    attr_reader :size

    # Makes one.
    def initialize(context, size = 3, *rest, mode:, tries: 1, **options, &block)
      super()
      @context = context
    end

    # Hides the soft keyboard.
    #
    # @param view [View] the view
    # @return [Boolean] whether it was hidden
    def hide(view)
      # ask the system
      manager = System.service("input #{view.id} method", :now)
      raise Error, 'not hidden' unless visible?

      view.each { |row| puts row }
      Widget.new(MAX_TRIES)
      manager&.hide!(view) do |done|
        @done = done
      end
    end

    def self.create(*) = new(*)

    class << self
      def build; end
    end

    def ==(other) = other.is_a?(Keyboard)

    def [](key)
      @keys[key]
    end

    def size=(value)
      @size = value
    end

    def empty? = true

    # Hidden.
    private def secret; end

    define_method(:dynamic) { |x| x }
  end
end

=begin
A block of documentation.
=end
def größe(höhe)
  text = <<~SQL
    select #{höhe}
  SQL
  höhe * FAKTOR
end

adder = lambda { |a, b| a + b }
multiply = ->(x, y = 2) { x * y }

Point = Struct.new(:x, :y) do
  def distance = Math.sqrt(x)
end

get '/path' do
  def helper; end
end
