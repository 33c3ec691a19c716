; Go. Captures are named by the fields of a Document (ncs/types.py); `@function` and `@method` are kinds of documents,
; each with its `.name`; `@class` is whatever else gives its name to a scope, `@scope` a receiver, which does so too.

(function_declaration name: (identifier) @function.name body: (_)) @function
(method_declaration name: (field_identifier) @method.name body: (_)) @method
(short_var_declaration
  left: (expression_list . (identifier) @function.name .) right: (expression_list . (func_literal) .)) @function
(var_spec name: (identifier) @function.name value: (expression_list . (func_literal) .)) @function
(var_declaration "var" @preamble . (var_spec value: (expression_list . (func_literal) .)))

(method_declaration receiver: (parameter_list (parameter_declaration type: [
  (type_identifier) @scope.name
  (pointer_type (type_identifier) @scope.name)
  (generic_type type: (type_identifier) @scope.name)
  (pointer_type (generic_type type: (type_identifier) @scope.name))
]))) @scope
(type_spec name: (type_identifier) @class.name type: [(struct_type) (interface_type)]) @class
(type_declaration "type" @preamble . (type_spec type: [(struct_type) (interface_type)]))

((function_declaration parameters: (parameter_list . (parameter_declaration
    type: (pointer_type (qualified_type package: (package_identifier) @_testing))))) @test
  (#eq? @_testing "testing"))
((function_declaration parameters: (parameter_list . (parameter_declaration
    type: (qualified_type package: (package_identifier) @_testing)))) @test
  (#eq? @_testing "testing"))
((method_declaration parameters: (parameter_list . (parameter_declaration
    type: (pointer_type (qualified_type package: (package_identifier) @_testing))))) @test
  (#eq? @_testing "testing"))

(call_expression function: (identifier) @calls)
(call_expression function: (selector_expression field: (field_identifier) @calls))
(call_expression function: (index_expression operand: (identifier) @calls))
(type_conversion_expression type: (generic_type type: (type_identifier) @calls))
(type_conversion_expression type: (generic_type type: (qualified_type name: (type_identifier) @calls)))
(composite_literal type: (type_identifier) @calls)
(composite_literal type: (qualified_type name: (type_identifier) @calls))
(composite_literal type: (generic_type type: (type_identifier) @calls))

(parameter_declaration name: (identifier) @parameters)
(variadic_parameter_declaration name: (identifier) @parameters)

(type_identifier) @types
(const_spec name: (identifier) @enums)
[(interpreted_string_literal_content) (raw_string_literal_content)] @literals
[(rune_literal) (escape_sequence)] @nothing
(comment) @comments
