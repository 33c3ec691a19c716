; Shells. Captures are named by the fields of a Document (ncs/types.py); `@function` is the kind of document, with its
; `.name`. Commands are calls.

(function_definition name: (word) @function.name) @function

(command_name (word) @calls)

[(string_content) (raw_string) (ansi_c_string) (heredoc_body)] @literals
[(heredoc_start) (heredoc_end) (special_variable_name)] @nothing
(simple_expansion "$" @nothing)
(comment) @comments
