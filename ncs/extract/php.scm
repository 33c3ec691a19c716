; PHP. Captures are named by the fields of a Document (ncs/types.py); `@function`, `@method` and `@constructor` are kinds
; of documents, each with its `.name`; `@class` is whatever else gives its name to a scope.

(function_definition name: (name) @function.name) @function
((method_declaration name: (name) @method.name body: (_)) @method
  (#not-eq? @method.name "__construct"))
((method_declaration name: (name) @constructor.name body: (_)) @constructor
  (#eq? @constructor.name "__construct"))
(assignment_expression
  left: (variable_name (name) @function.name) right: [(anonymous_function) (arrow_function)]) @function
(assignment_expression
  left: (member_access_expression name: (name) @function.name) right: [(anonymous_function) (arrow_function)]) @function
(array_element_initializer
  . (string (string_content) @function.name) [(anonymous_function) (arrow_function)]) @function

(class_declaration name: (name) @class.name) @class
(interface_declaration name: (name) @class.name) @class
(trait_declaration name: (name) @class.name) @class
(enum_declaration name: (name) @class.name) @class

((base_clause . (_) @_test) @test.member
  (#match? @_test "TestCase$"))
((comment) @_test . (method_declaration) @test
  (#match? @_test "[*][ \t]*@test\\b"))

(function_call_expression function: (name) @calls)
(function_call_expression function: (qualified_name (name) @calls .))
(member_call_expression name: (name) @calls)
(nullsafe_member_call_expression name: (name) @calls)
(scoped_call_expression name: (name) @calls)
(object_creation_expression (name) @calls)
(object_creation_expression (qualified_name (name) @calls .))
(attribute (name) @calls @test.attribute)
(attribute (qualified_name (name) @test.attribute .))

(simple_parameter name: (variable_name "$" @nothing (name) @parameters))
(variadic_parameter name: (variable_name "$" @nothing (name) @parameters))
(property_promotion_parameter name: (variable_name "$" @nothing (name) @parameters))

(named_type (name) @types)
(named_type (qualified_name (name) @types .))
(class_constant_access_expression (name) @enums .)
(enum_case name: (name) @enums)
[(string_content) (nowdoc_string)] @literals
[(escape_sequence) (heredoc_start) (heredoc_end) (text) (php_tag)] @nothing
((variable_name) @nothing (#eq? @nothing "$this"))
(comment) @comments
