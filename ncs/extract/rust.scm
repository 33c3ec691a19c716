; Rust. Captures are named by the fields of a Document (ncs/types.py); `@function` and `@macro` are kinds of documents,
; each with its `.name`; `@class` is whatever else gives its name to a scope, `@scope` the type of an `impl`;
; `@preamble` stands directly before a function and belongs to it.

(function_item name: (_) @function.name) @function
(macro_definition name: (identifier) @macro.name) @macro

(struct_item name: (type_identifier) @class.name) @class
(enum_item name: (type_identifier) @class.name) @class
(union_item name: (type_identifier) @class.name) @class
(trait_item name: (type_identifier) @class.name) @class
(mod_item name: (identifier) @class.name body: (_)) @class
(impl_item type: (_) @scope.name) @scope
(attribute_item) @preamble

((attribute_item (attribute . [(identifier) (scoped_identifier name: (identifier))] @_test)) @test
  (#match? @_test "^(.*:)?(test|rstest|test_case)$"))
((attribute_item (attribute . (identifier) @_cfg arguments: (token_tree . (identifier) @_test .))) @test
  (#eq? @_cfg "cfg") (#eq? @_test "test"))
((attribute_item (attribute . (identifier) @_cfg
    arguments: (token_tree . (identifier) @_all . (token_tree (identifier) @_test) .))) @test
  (#eq? @_cfg "cfg") (#eq? @_all "all") (#eq? @_test "test"))

(call_expression function: (identifier) @calls)
(call_expression function: (field_expression field: (field_identifier) @calls))
(call_expression function: (scoped_identifier name: (identifier) @calls))
(generic_function function: (identifier) @calls)
(generic_function function: (field_expression field: (field_identifier) @calls))
(generic_function function: (scoped_identifier name: (identifier) @calls))
(macro_invocation macro: (identifier) @calls)
(macro_invocation macro: (scoped_identifier name: (identifier) @calls))
(struct_expression name: (type_identifier) @calls)
(struct_expression name: (scoped_type_identifier name: (type_identifier) @calls))

(parameter pattern: (identifier) @parameters)
(parameter pattern: (tuple_pattern (identifier) @parameters))
(closure_parameters (identifier) @parameters)
(closure_parameters (tuple_pattern (identifier) @parameters))

(type_identifier) @types
(enum_variant name: (identifier) @enums)
(string_content) @literals
[(escape_sequence) (char_literal) (lifetime)] @nothing
[(line_comment) (block_comment)] @comments
