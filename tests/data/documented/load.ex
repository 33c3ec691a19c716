defmodule A do
  @doc """
  Reads the file.

  More.
  """
  def load(p) do
    x = open(p)
    x
  end
end
