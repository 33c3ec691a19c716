defmodule App.Keyboard do
  @moduledoc """
  A row.
  """
  use GenServer
  @max 3
  @doc """
  Hides.
  """
  @spec hide(View.t(), integer) :: boolean
  def hide(view, flags \\ 0) when is_integer(flags) do
    # ask the system
    m = System.service("a #{view.id} b", :input, 'c')
    view |> Enum.map(fn x -> x + 1 end) |> go()
    Enum.map(list, &to_string/1)
    %Widget{a: 1}
  end
  def fact(0), do: 1
  def fact(n), do: n * fact(n - 1)
  @doc "Short."
  defp secret(), do: nil
  defmacro mac(x) do quote do unquote(x) end end
  def a <> b, do: a
  @impl true
  def handle_call(:x, _from, state), do: {:reply, nil, state}
  def größe(höhe), do: höhe
  def no_args do 1 end
  defstruct [:a]
  defguard is_x(a) when a > 1
  defdelegate foo(a), to: Bar
end
defimpl Shape, for: Keyboard do
  def area(k), do: 1
end
defprotocol Shape do
  def area(x)
end
test "works" do assert 1 == 1 end
~s(sigil)
