; Kotlin. Captures are named by the fields of a Document (ncs/types.py); `@function` and the like are kinds of documents,
; each with its `.name`; `@class` is whatever else gives its name to a scope, `@scope` the type that a function extends.

(function_declaration name: (identifier) @function.name (function_body)) @function
(function_declaration (user_type . (identifier) @scope.name) . "." (function_body)) @scope
(secondary_constructor "constructor" @constructor.name) @constructor
(anonymous_initializer) @initializer
(property_declaration (variable_declaration . (identifier) @property.name) (getter (function_body))) @property

(class_declaration name: (identifier) @class.name) @class
(object_declaration name: (identifier) @class.name) @class

((annotation [
    (user_type (identifier) @_test .) (constructor_invocation (user_type (identifier) @_test .))
  ]) @test.member
  (#any-of? @_test "Test" "ParameterizedTest" "RepeatedTest" "TestFactory" "TestTemplate"))
((delegation_specifier (constructor_invocation (user_type (identifier) @_test .))) @test.member
  (#match? @_test "^(String|Fun|Describe|Behavior|Should|Free|Word|Feature|Expect|Annotation)Spec$"))

(call_expression . (identifier) @calls)
(call_expression . (navigation_expression (identifier) @calls .))
(constructor_invocation (user_type (identifier) @calls .))
(infix_expression (identifier) . (identifier) @calls)

(parameter . (identifier) @parameters)
(lambda_parameters (variable_declaration . (identifier) @parameters))

(user_type (identifier) @types)
(enum_entry (identifier) @enums)
(string_content) @literals
[(escape_sequence) (character_literal)] @nothing
[(line_comment) (block_comment)] @comments
