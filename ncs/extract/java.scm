; Java. Captures are named by the fields of a Document (ncs/types.py); `@method` and the like are kinds of documents,
; each with its `.name`; `@class` is whatever else gives its name to a scope, `@scope` a constant or an anonymous class.
; A name before a round bracket is a call and needs no capture; `@names` are those that are none nevertheless.

(method_declaration name: (identifier) @method.name body: (block)) @method
(constructor_declaration name: (identifier) @constructor.name) @constructor
(compact_constructor_declaration name: (identifier) @constructor.name) @constructor
(static_initializer) @initializer

(class_declaration name: (identifier) @class.name) @class
(interface_declaration name: (identifier) @class.name) @class
(enum_declaration name: (identifier) @class.name) @class
(record_declaration name: (identifier) @class.name) @class
(annotation_type_declaration name: (identifier) @class.name) @class
(enum_constant name: (identifier) @scope.name body: (class_body)) @scope
(object_creation_expression type: (_) @scope.name (class_body)) @scope

((marker_annotation name: (_) @_test) @test.member
  (#match? @_test "^(.*[.])?((Parameterized|Repeated)?Test|Test(Factory|Template))$"))
((annotation name: (_) @_test) @test.member
  (#match? @_test "^(.*[.])?((Parameterized|Repeated)?Test|Test(Factory|Template))$"))
((superclass (_) @_test) @test.member
  (#match? @_test "^(.*[.])?TestCase$"))

(method_reference (identifier) @calls .)
(object_creation_expression type: (type_identifier) @calls)
(object_creation_expression type: (generic_type . (type_identifier) @calls))
(object_creation_expression type: (scoped_type_identifier (type_identifier) @calls .))
(object_creation_expression type: (generic_type . (scoped_type_identifier (type_identifier) @calls .)))

(formal_parameter name: (identifier) @parameters)
(spread_parameter (variable_declarator name: (identifier) @parameters))
(inferred_parameters (identifier) @parameters)
(lambda_expression parameters: (identifier) @parameters)

(type_identifier) @types
[
  (annotation name: (identifier) @names)
  (annotation name: (scoped_identifier name: (identifier) @names))
  (record_pattern . (identifier) @names)
  (record_declaration name: (identifier) @names)
  (enum_constant name: (identifier) @names)
]
(string_literal) @literals
(character_literal) @nothing
[(block_comment) (line_comment)] @comments
