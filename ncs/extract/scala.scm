; Scala. Captures are named by the fields of a Document (ncs/types.py); `@method` and `@function` are kinds of documents,
; each with its `.name`; `@class` is whatever else gives its name to a scope, `@scope` the type that is extended.

(function_definition name: (_) @method.name) @method
(val_definition pattern: (identifier) @function.name value: (lambda_expression)) @function

(class_definition name: (_) @class.name) @class
(object_definition name: (_) @class.name) @class
(package_object name: (_) @class.name) @class
(trait_definition name: (_) @class.name) @class
(enum_definition name: (_) @class.name) @class
(given_definition name: (identifier) @class.name) @class
(extension_definition parameters: (parameters . (parameter type: (_) @scope.name))) @scope

((extends_clause type: (_) @_test) @test.member
  (#match? @_test "(Fun|Flat|Word|Free|Prop|Feature)(Suite|Spec)(Like)?$"))
(call_expression function: (identifier) @calls)
(call_expression function: (field_expression field: (identifier) @calls))
(generic_function function: (identifier) @calls)
(generic_function function: (field_expression field: (identifier) @calls))
(infix_expression operator: (identifier) @calls)
(instance_expression (type_identifier) @calls)
(instance_expression (generic_type type: (type_identifier) @calls))

(parameter name: (identifier) @parameters)
(binding name: (identifier) @parameters)
(lambda_expression parameters: (identifier) @parameters)

(type_identifier) @types
(simple_enum_case name: (identifier) @enums)
[(string) (interpolated_string)] @literals
(interpolated_string_expression interpolator: (identifier) @nothing)
(character_literal) @nothing
[(comment) (block_comment)] @comments
