; Elixir. Captures are named by the fields of a Document (ncs/types.py); `@function` and `@test` are kinds of documents,
; each with its `.name`; `@class` is whatever else gives its name to a scope; `@preamble` stands directly before a
; function and belongs to it. What documents one is an attribute, read as a comment.

((call target: (identifier) @_def (arguments . (call target: (identifier) @function.name))) @function
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate" "defn" "defnp"))
((call target: (identifier) @_def (arguments . (identifier) @function.name)) @function
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate" "defn" "defnp"))
((call target: (identifier) @_def
    (arguments . (binary_operator left: (call target: (identifier) @function.name) operator: "when"))) @function
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate" "defn" "defnp"))
((call target: (identifier) @_def
    (arguments . (binary_operator left: (identifier) operator: _ @function.name))) @function
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate" "defn" "defnp"))
((call target: (identifier) @_test (arguments . (string) @test.name) (do_block)) @test
  (#eq? @_test "test"))

((call target: (identifier) @_module (arguments . (alias) @class.name)) @class
  (#any-of? @_module "defmodule" "defprotocol" "defimpl"))
((unary_operator operator: "@" operand: (call target: (identifier) @_attribute)) @preamble
  (#any-of? @_attribute "spec" "impl" "deprecated"))

(call target: (identifier) @calls)
(call target: (dot right: (identifier) @calls))

((call target: (identifier) @_def (arguments . (call (arguments (identifier) @parameters))))
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate" "defn" "defnp"))
((call target: (identifier) @_def
    (arguments . (call (arguments (binary_operator left: (identifier) @parameters)))))
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate" "defn" "defnp"))
((call target: (identifier) @_def
    (arguments . (binary_operator left: (call (arguments (identifier) @parameters)))))
  (#any-of? @_def "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate" "defn" "defnp"))
(stab_clause left: (arguments (identifier) @parameters))

(quoted_content) @literals
[(escape_sequence) (sigil_name) (sigil_modifiers)] @nothing
((call target: (identifier) @_spec (arguments (binary_operator left: (call target: (identifier) @nothing))))
  (#eq? @_spec "spec"))
((call target: (identifier) @_spec
    (arguments (binary_operator left: (binary_operator left: (call target: (identifier) @nothing)))))
  (#eq? @_spec "spec"))
(comment) @comments
((unary_operator operator: "@" operand: (call target: (identifier) @_doc (arguments [(string) (sigil)]))) @comments
  (#any-of? @_doc "doc" "moduledoc" "typedoc"))
