; SQL. Its unit is the statement. Captures are named by the fields of a Document (ncs/types.py); `@table` and the like are
; kinds of documents, each with its `.name`; what asks or changes is a `@query`, named by its first table.

(statement (create_table
  [(keyword_table) (keyword_exists)] . (object_reference name: (identifier) @table.name))) @table
(statement (create_view
  [(keyword_view) (keyword_exists)] . (object_reference name: (identifier) @view.name))) @view
(statement (create_materialized_view
  [(keyword_view) (keyword_exists)] . (object_reference name: (identifier) @view.name))) @view
(statement (create_function
  [(keyword_function) (keyword_exists)] . (object_reference name: (identifier) @function.name))) @function
(statement (create_procedure
  [(keyword_procedure) (keyword_exists)] . (object_reference name: (identifier) @procedure.name))) @procedure
(statement (create_type
  [(keyword_type) (keyword_exists)] . (object_reference name: (identifier) @type.name))) @type
(statement (create_trigger (keyword_trigger) . (object_reference name: (identifier) @trigger.name))) @trigger
(statement (create_index column: (identifier) @index.name)) @index
(program (statement (alter_table
  [(keyword_table) (keyword_exists) (keyword_only)] . (object_reference name: (identifier) @query.name))) @query)
(program (statement (insert (keyword_into) . (object_reference name: (identifier) @query.name))) @query)
(program (statement (update . (keyword_update) . (relation (object_reference name: (identifier) @query.name)))) @query)
(program (statement (delete) . (from (object_reference name: (identifier) @query.name))) @query)
(program (statement (select) . (from . (keyword_from) . (relation (object_reference name: (identifier) @query.name)))) @query)

(invocation (object_reference name: (identifier) @calls))
(function_argument . (identifier) @parameters)
(relation (object_reference name: (identifier) @types))

((literal) @literals
  (#match? @literals "^['\"]"))
(dollar_quote) @nothing
[(comment) (marginalia)] @comments
