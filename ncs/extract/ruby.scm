; Ruby. Captures are named by the fields of a Document (ncs/types.py); `@method` and `@function` are kinds of documents,
; each with its `.name`; `@class` is whatever else gives its name to a scope, `@preamble` stands directly before a
; method and belongs to it.

(method name: (_) @method.name) @method
(singleton_method name: (_) @method.name) @method
((call
  method: (identifier) @_define arguments: (argument_list . [(simple_symbol) (string)] @method.name) block: (_)) @method
  (#any-of? @_define "define_method" "define_singleton_method"))
((assignment left: (_) @function.name right: (call method: (identifier) @_lambda block: (_))) @function
  (#any-of? @_lambda "lambda" "proc"))
(assignment left: (_) @function.name right: (lambda)) @function

((call method: (identifier) @preamble arguments: (argument_list . [(method) (singleton_method)]))
  (#not-any-of? @preamble "define_method"))

(class name: (_) @class.name) @class
(module name: (_) @class.name) @class
((assignment left: (constant) @class.name right: (call method: (identifier) @_new block: (_))) @class
  (#any-of? @_new "new" "define"))

((call method: (identifier) @_test block: (_)) @test
  (#any-of? @_test "describe" "it" "specify"))
((superclass (_) @_test) @test.member
  (#match? @_test "(TestCase|Minitest::Test|IntegrationTest)$"))

(call method: [(identifier) (constant)] @calls)
((call receiver: (constant) @calls method: (identifier) @_new)
  (#eq? @_new "new"))
((call receiver: (scope_resolution name: (constant) @calls) method: (identifier) @_new)
  (#eq? @_new "new"))

(method_parameters (identifier) @parameters)
(block_parameters (identifier) @parameters)
(lambda_parameters (identifier) @parameters)
(optional_parameter name: (identifier) @parameters)
(keyword_parameter name: (identifier) @parameters)
(splat_parameter name: (identifier) @parameters)
(hash_splat_parameter name: (identifier) @parameters)
(block_parameter name: (identifier) @parameters)
(destructured_parameter (identifier) @parameters)

[(string_content) (heredoc_content)] @literals
[(escape_sequence) (heredoc_beginning) (heredoc_end) (character)] @nothing
(comment) @comments
