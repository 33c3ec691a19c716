; What JavaScript and TypeScript share. Captures are named by the fields of a Document (ncs/types.py); `@function`,
; `@method` and `@constructor` are kinds of documents, each with its `.name`; `@class` is whatever else gives its name
; to a scope, `@scope` the object that a function is put into; `@preamble` stands directly before a function.

(function_declaration name: (identifier) @function.name) @function
(generator_function_declaration name: (identifier) @function.name) @function
(variable_declarator
  name: (identifier) @function.name value: [(arrow_function) (function_expression) (generator_function)]) @function
(pair
  key: (property_identifier) @function.name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(pair
  key: (string (string_fragment) @function.name)
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression
  left: (identifier) @function.name
  right: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression
  left: (member_expression property: (_) @function.name)
  right: [(arrow_function) (function_expression !name) (generator_function !name)]) @function
((assignment_expression
  left: (member_expression property: (_) @function.name)
  right: [(function_expression name: (_)) (generator_function name: (_))]) @function
  (#not-eq? @function.name "exports"))
((assignment_expression
  left: (member_expression property: (_) @_exports)
  right: [(function_expression name: (_) @function.name) (generator_function name: (_) @function.name)]) @function
  (#eq? @_exports "exports"))
(assignment_expression
  left: (subscript_expression index: [(identifier) @function.name (string (string_fragment) @function.name)])
  right: [(arrow_function) (function_expression) (generator_function)]) @function
(arguments (function_expression name: (identifier) @function.name) @function)
(return_statement (function_expression name: (identifier) @function.name) @function)
(parenthesized_expression (function_expression name: (identifier) @function.name) @function)
(export_statement "default" @function.name value: [(arrow_function) (function_expression !name)]) @function

(method_definition name: [(private_property_identifier) (string) (computed_property_name)] @method.name) @method
((method_definition name: (property_identifier) @method.name) @method
  (#not-eq? @method.name "constructor"))
((method_definition name: (property_identifier) @constructor.name) @constructor
  (#eq? @constructor.name "constructor"))

(export_statement ["export" "default"] @preamble)
(lexical_declaration kind: _ @preamble
  . (variable_declarator value: [(arrow_function) (function_expression) (generator_function)]))
(variable_declaration "var" @preamble
  . (variable_declarator value: [(arrow_function) (function_expression) (generator_function)]))

(variable_declarator name: (identifier) @scope.name value: (object)) @scope
(pair key: (property_identifier) @scope.name value: (object)) @scope
(assignment_expression left: (identifier) @scope.name right: (object)) @scope
(assignment_expression left: (member_expression property: (property_identifier) @scope.name) right: (object)) @scope
((assignment_expression
  left: (member_expression object: (identifier) @scope.name)
  right: [(arrow_function) (function_expression) (generator_function)]) @scope
  (#not-eq? @scope.name "module"))
((assignment_expression
  left: (member_expression object: (member_expression
    object: (identifier) @scope.name property: (property_identifier) @_prototype))
  right: [(arrow_function) (function_expression) (generator_function)]) @scope
  (#eq? @_prototype "prototype"))

((call_expression function: (identifier) @_test arguments: (arguments . [(string) (template_string)])) @test
  (#any-of? @_test "describe" "it" "test" "suite" "specify" "fdescribe" "xdescribe" "xit"))
((call_expression
  function: (member_expression object: (identifier) @_test property: (property_identifier) @_how)
  arguments: (arguments . [(string) (template_string)])) @test
  (#any-of? @_test "describe" "it" "test" "suite" "QUnit" "Deno")
  (#any-of? @_how "only" "skip" "concurrent" "sequential" "describe" "serial" "parallel" "module" "test"))
((call_expression
  function: (call_expression function: (member_expression object: (identifier) @_test property: (property_identifier) @_how))
  arguments: (arguments . (string))) @test
  (#any-of? @_test "describe" "it" "test") (#eq? @_how "each"))
((call_expression
  function: (identifier) @_test arguments: (arguments . [(arrow_function) (function_expression)])) @test
  (#any-of? @_test "beforeEach" "afterEach" "beforeAll" "afterAll"))

(call_expression function: (identifier) @calls)
(call_expression function: (member_expression property: (property_identifier) @calls))
(new_expression constructor: (identifier) @calls)
(new_expression constructor: (member_expression property: (property_identifier) @calls))
(decorator (identifier) @calls)
(decorator (member_expression property: (property_identifier) @calls))

(arrow_function parameter: (identifier) @parameters)
(rest_pattern (identifier) @parameters)
(object_pattern [
  (shorthand_property_identifier_pattern) @parameters
  (object_assignment_pattern left: (shorthand_property_identifier_pattern) @parameters)
])

(string_fragment) @literals
[(escape_sequence) (regex)] @nothing
(comment) @comments
