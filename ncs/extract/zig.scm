; Zig. Captures are named by the fields of a Document (ncs/types.py); `@function` and `@test` are kinds of documents, each
; with its `.name`; `@class` is whatever else gives its name to a scope.

(function_declaration name: (identifier) @function.name body: (_)) @function
(test_declaration [(identifier) (string)] @test.name) @test

(variable_declaration
  . (identifier) @class.name [(struct_declaration) (enum_declaration) (union_declaration) (opaque_declaration)]) @class

(call_expression function: (identifier) @calls)
(call_expression function: (field_expression member: (identifier) @calls))

(parameter name: (identifier) @parameters)

(field_expression . "." member: (identifier) @enums)
[(string_content) (multiline_string)] @literals
[(escape_sequence) (character)] @nothing
(comment) @comments
