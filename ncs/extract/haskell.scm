; Haskell. Captures are named by the fields of a Document (ncs/types.py); `@function` is the kind of document, with its
; `.name`: a definition with parameters wherever it stands, one without at the top only; `@class` is whatever else gives
; its name to a scope, `@scope` an instance; `@preamble` stands directly before a function and belongs to it.

(function name: (_) @function.name) @function
(function (infix operator: (operator) @function.name)) @function
(function (infix operator: (infix_id (variable) @function.name))) @function
(declarations (bind name: (_) @function.name) @function)
(class_declarations (bind name: (_) @function.name) @function)
(instance_declarations (bind name: (_) @function.name) @function)

(data_type name: (_) @class.name) @class
(newtype name: (_) @class.name) @class
(class name: (_) @class.name) @class
(instance name: (_) @scope.name) @scope
(signature) @preamble
(pragma) @preamble

(apply function: [(variable) (constructor)] @calls)
(apply function: (qualified id: (_) @calls))
(infix operator: (infix_id (variable) @calls))
((infix left_operand: (variable) @calls operator: (operator) @_apply)
  (#any-of? @_apply "$" "<$>" "$!"))

(patterns (variable) @parameters)

(name) @types
(string) @literals
[(char) (pragma)] @nothing
[(comment) (haddock)] @comments
