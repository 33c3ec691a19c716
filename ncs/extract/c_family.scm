; What C and C++ share. Captures are named by the fields of a Document (ncs/types.py); `@function` is a kind of
; document, with its `.name`. A name is as deep in its declarator as the function's type has pointers.

(function_definition declarator: [
  (function_declarator declarator: (identifier) @function.name)
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @function.name))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @function.name)))
  (pointer_declarator declarator: (pointer_declarator declarator: (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @function.name))))
  (function_declarator declarator: (parenthesized_declarator (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @function.name))))
  (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @function.name)))))
  (parenthesized_declarator (identifier) @function.name)
] body: (_)) @function

(struct_specifier name: (_) @class.name body: (_)) @class
(union_specifier name: (_) @class.name body: (_)) @class
(enum_specifier name: (_) @class.name body: (_)) @class

(call_expression function: (identifier) @calls)
(call_expression function: (field_expression field: (field_identifier) @calls))

(parameter_declaration declarator: (identifier) @parameters)
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @parameters))
(parameter_declaration
  declarator: (pointer_declarator declarator: (pointer_declarator declarator: (identifier) @parameters)))
(parameter_declaration declarator: (array_declarator declarator: (identifier) @parameters))
(parameter_declaration declarator: (pointer_declarator declarator: (array_declarator declarator: (identifier) @parameters)))
(parameter_declaration declarator: (function_declarator
  declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @parameters))))

(type_identifier) @types
(enumerator name: (identifier) @enums)
(string_content) @literals
[(escape_sequence) (char_literal) (system_lib_string)] @nothing
(comment) @comments
