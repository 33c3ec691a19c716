; SQL. Its unit is the statement. Captures are named by the fields of a Document (ncs/types.py); `@table` and the like are
; kinds of documents, each with its `.name`; what asks or changes is a `@query`, named by its first table.

(program (statement (create_table (object_reference name: (identifier) @table.name))) @table)
(program (statement (create_view (object_reference name: (identifier) @view.name))) @view)
(program (statement (create_materialized_view (object_reference name: (identifier) @view.name))) @view)
(program (statement (create_function (object_reference name: (identifier) @function.name))) @function)
(program (statement (create_procedure (object_reference name: (identifier) @procedure.name))) @procedure)
(program (statement (create_type (object_reference name: (identifier) @type.name))) @type)
(program (statement (create_trigger (keyword_trigger) . (object_reference name: (identifier) @trigger.name))) @trigger)
(program (statement (create_index column: (identifier) @index.name)) @index)
(program (statement (alter_table (object_reference name: (identifier) @query.name))) @query)
(program (statement (insert (object_reference name: (identifier) @query.name))) @query)
(program (statement (update (relation (object_reference name: (identifier) @query.name)))) @query)
(program (statement (delete) . (from (object_reference name: (identifier) @query.name))) @query)
(program (statement (select) . (from . (keyword_from) . (relation (object_reference name: (identifier) @query.name)))) @query)

(invocation (object_reference name: (identifier) @calls))
(function_argument . (identifier) @parameters)
(relation (object_reference name: (identifier) @types))

((literal) @literals
  (#match? @literals "^['\"]"))
(dollar_quote) @nothing
[(comment) (marginalia)] @comments
