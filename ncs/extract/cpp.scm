; C++: what C has not. `@method` is a function within a class; `@class` is whatever else gives its name to a scope,
; `@scope` the class that a function names as its own; `@preamble` stands directly before a function.

(function_definition declarator: [
  (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @method.name)
  (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @method.name))
  (pointer_declarator declarator: (pointer_declarator
    declarator: (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @method.name)))
  (reference_declarator (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @method.name))
] body: (_)) @method
(function_definition declarator: (reference_declarator (function_declarator declarator: (identifier) @function.name)) body: (_)) @function
(function_definition declarator: (operator_cast type: (_) @method.name) body: (_)) @method
(function_definition
  declarator: (qualified_identifier scope: (_) @scope.name name: (operator_cast type: (_) @method.name))
  body: (_)) @method @scope
(function_definition declarator: (function_declarator declarator: (template_function name: (identifier) @function.name)) body: (_)) @function

(function_definition declarator: [
  (function_declarator declarator: [
    (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name)
    (qualified_identifier name: (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name))
    (qualified_identifier name: (qualified_identifier name: (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name)))
  ])
  (pointer_declarator declarator: (function_declarator declarator: [
    (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name)
    (qualified_identifier name: (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name))
    (qualified_identifier name: (qualified_identifier name: (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name)))
  ]))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: [
    (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name)
    (qualified_identifier name: (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name))
    (qualified_identifier name: (qualified_identifier name: (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name)))
  ])))
  (reference_declarator (function_declarator declarator: [
    (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name)
    (qualified_identifier name: (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name))
    (qualified_identifier name: (qualified_identifier name: (qualified_identifier scope: (_) @scope.name
      name: [(identifier) (destructor_name) (operator_name) (template_function)] @method.name)))
  ]))
] body: (_)) @method @scope

(init_declarator declarator: (identifier) @function.name value: (lambda_expression)) @function

((function_definition !type declarator: (function_declarator declarator: (identifier) @_test parameters: (_) @test.title)) @test
  (#match? @_test "^(TYPED_)?TEST(_F|_P|_CASE|_METHOD)?$|^BOOST_(AUTO|FIXTURE)_TEST_CASE$"))
; Catch2 and doctest give a title, which makes it a call before a block.
((expression_statement (call_expression function: (identifier) @test.library)) @test.by_name
  . (compound_statement) @test.by_name
  (#match? @test.library "^(TEMPLATE_)?(TEST_CASE|SCENARIO)(_[A-Z_]+)?$"))

(class_specifier name: (_) @class.name body: (_)) @class
(namespace_definition name: (_) @class.name) @class
(concept_definition name: (identifier) @class.name) @class
(template_declaration ["template" (template_parameter_list) (requires_clause)] @preamble)

(call_expression function: (template_function name: (identifier) @calls))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @calls)))
(call_expression function: (qualified_identifier name: (identifier) @calls))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @calls)))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @calls)))
(call_expression
  function: (qualified_identifier name: (qualified_identifier name: (template_function name: (identifier) @calls))))
(new_expression type: (type_identifier) @calls)
(new_expression type: (template_type name: (type_identifier) @calls))
(new_expression type: (qualified_identifier name: (type_identifier) @calls))

(parameter_declaration declarator: (reference_declarator (identifier) @parameters))
(optional_parameter_declaration declarator: (identifier) @parameters)
(optional_parameter_declaration declarator: (reference_declarator (identifier) @parameters))
(optional_parameter_declaration declarator: (pointer_declarator declarator: (identifier) @parameters))
(variadic_parameter_declaration declarator: (variadic_declarator (identifier) @parameters))
(variadic_parameter_declaration declarator: (reference_declarator (variadic_declarator (identifier) @parameters)))

(raw_string_content) @literals
(raw_string_delimiter) @nothing
