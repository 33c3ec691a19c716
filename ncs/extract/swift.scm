; Swift. Captures are named by the fields of a Document (ncs/types.py); `@function` and the like are kinds of documents,
; each with its `.name`; `@class` is whatever else gives its name to a scope, `@scope` the type of an extension.

(function_declaration name: [
  (simple_identifier) (custom_operator)
  "==" "!=" "===" "!==" "<" ">" "<=" ">=" "+" "-" "*" "/" "%" "+=" "-=" "*=" "/=" "%=" "!" "&" "|" "^" "~" "<<" ">>"
] @function.name body: (_)) @function
(init_declaration "init" @constructor.name body: (_)) @constructor
(deinit_declaration "deinit" @function.name) @function
(subscript_declaration "subscript" @property.name) @property
(property_declaration
  name: (pattern bound_identifier: (simple_identifier) @property.name) computed_value: (computed_property)) @property
(property_declaration
  name: (pattern bound_identifier: (simple_identifier) @property.name) (willset_didset_block)) @property

(class_declaration name: (type_identifier) @class.name) @class
(protocol_declaration name: (type_identifier) @class.name) @class
(class_declaration name: (user_type) @scope.name) @scope

((inheritance_specifier inherits_from: (_) @_test) @test.member
  (#match? @_test "(TestCase|QuickSpec|AsyncSpec)$"))
((attribute . (_) @_test) @test.member
  (#eq? @_test "Suite"))
((function_declaration (modifiers (attribute . (_) @_test))) @test.member
  (#eq? @_test "Test"))

(call_expression . (simple_identifier) @calls)
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @calls)))

(parameter name: (simple_identifier) @parameters)
(lambda_parameter name: (simple_identifier) @parameters)

(type_identifier) @types
(enum_entry name: (simple_identifier) @enums)
(prefix_expression "." target: (simple_identifier) @enums)
[(line_str_text) (multi_line_str_text) (raw_str_part) (raw_str_end_part)] @literals
(str_escaped_char) @nothing
[(comment) (multiline_comment)] @comments
