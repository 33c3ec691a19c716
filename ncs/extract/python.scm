; Python. Captures are named by the fields of a Document (ncs/types.py); `@function` is the kind of document, with its
; `.name`; `@class` is whatever else gives its name to a scope.
; A name before a round bracket is a call and needs no capture; `@names` are those that are none nevertheless.

(function_definition name: (identifier) @function.name) @function
(decorated_definition definition: (function_definition) @decorated.definition) @decorated
(class_definition name: (identifier) @class.name) @class

((class_definition superclasses: (argument_list (_) @_test)) @test
  (#match? @_test "TestCase$"))
((module [
    (function_definition name: (identifier) @_test)
    (decorated_definition definition: (function_definition name: (identifier) @_test))
  ] @test.by_name)
  (#match? @_test "^test_"))
((module (class_definition name: (identifier) @_test) @test.by_name)
  (#match? @_test "^Test([A-Z_]|$)"))
([
    (import_statement name: (dotted_name . (identifier) @test.library))
    (import_statement name: (aliased_import name: (dotted_name . (identifier) @test.library)))
    (import_from_statement module_name: (dotted_name . (identifier) @test.library))
  ] (#any-of? @test.library "pytest" "unittest"))

((decorated_definition
    (decorator [(identifier) @_overload (attribute attribute: (identifier) @_overload)])
    definition: (function_definition)) @overload
  (#eq? @_overload "overload"))

(decorator (identifier) @calls)
(decorator (attribute attribute: (identifier) @calls))

(parameters [
  (identifier) @parameters
  (default_parameter name: (identifier) @parameters)
  (typed_parameter . (identifier) @parameters)
  (typed_parameter . (_ (identifier) @parameters))
  (typed_default_parameter name: (identifier) @parameters)
  (list_splat_pattern (identifier) @parameters)
  (dictionary_splat_pattern (identifier) @parameters)
])
(lambda_parameters [
  (identifier) @parameters
  (default_parameter name: (identifier) @parameters)
  (list_splat_pattern (identifier) @parameters)
  (dictionary_splat_pattern (identifier) @parameters)
])

((function_definition body: (block . (expression_statement (string (string_start) @_start (string_content) @doc.text) @doc)))
  (#not-match? @_start "[bBfF]"))

(match_statement "match" @nothing)
(case_clause "case" @nothing)
(type_conversion) @nothing
(string_start) @nothing

(class_definition name: (identifier) @names)
(class_pattern (dotted_name (identifier) @names .))

(string_content) @literals
(comment) @comments
(type (identifier) @types)
(type (generic_type (identifier) @types))
