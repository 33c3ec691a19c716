; C: parameters as Kernighan and Ritchie wrote them.

(function_declarator parameters: (parameter_list (identifier) @parameters))
(null) @nothing
