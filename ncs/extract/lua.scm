; Lua. Captures are named by the fields of a Document (ncs/types.py); `@function` and `@method` are kinds of documents,
; each with its `.name`; `@scope` is the table that a function is put into; `@preamble` stands directly before one.

(function_declaration name: (identifier) @function.name) @function
(function_declaration
  name: (dot_index_expression table: (identifier) @scope.name field: (identifier) @function.name)) @function @scope
(function_declaration name: (dot_index_expression
  table: (dot_index_expression field: (identifier) @scope.name) field: (identifier) @function.name)) @function @scope
(function_declaration
  name: (method_index_expression table: (identifier) @scope.name method: (identifier) @method.name)) @method @scope
(function_declaration name: (method_index_expression
  table: (dot_index_expression field: (identifier) @scope.name) method: (identifier) @method.name)) @method @scope

(assignment_statement
  (variable_list . name: (identifier) @function.name) (expression_list . value: (function_definition))) @function
(assignment_statement
  (variable_list . name: (dot_index_expression table: (identifier) @scope.name field: (identifier) @function.name))
  (expression_list . value: (function_definition))) @function @scope
(assignment_statement
  (variable_list . name: (dot_index_expression
    table: (dot_index_expression field: (identifier) @scope.name) field: (identifier) @function.name))
  (expression_list . value: (function_definition))) @function @scope
(assignment_statement
  (variable_list . name: (bracket_index_expression
    table: (identifier) @scope.name field: (string content: (string_content) @function.name)))
  (expression_list . value: (function_definition))) @function @scope
(variable_declaration "local" @preamble (assignment_statement (expression_list . value: (function_definition))))
(field name: (identifier) @function.name value: (function_definition)) @function
(field name: (string content: (string_content) @function.name) value: (function_definition)) @function
(assignment_statement
  (variable_list . name: (identifier) @scope.name) (expression_list . value: (table_constructor))) @scope

((function_call name: (identifier) @_test arguments: (arguments . (string) . (function_definition))) @test
  (#any-of? @_test "describe" "it" "context" "insulate" "expose" "spec" "test"))

(function_call name: (identifier) @calls)
(function_call name: (dot_index_expression field: (identifier) @calls))
(function_call name: (method_index_expression method: (identifier) @calls))
(parameters name: (identifier) @parameters)

(string_content) @literals
(escape_sequence) @nothing
(comment) @comments
