class A
  # Reads the file.
  #
  # @param p [String]
  def load(p)
    x = open(p)
    x
  end
end
