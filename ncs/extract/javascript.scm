; JavaScript: what TypeScript has otherwise.

(field_definition
  property: (_) @method.name value: [(arrow_function) (function_expression) (generator_function)]) @method

(class_declaration name: (identifier) @class.name) @class
(class name: (identifier) @class.name) @class
(variable_declarator name: (identifier) @class.name value: (class !name)) @class
(assignment_expression left: (member_expression property: (property_identifier) @class.name) right: (class !name)) @class

(formal_parameters [
  (identifier) @parameters
  (assignment_pattern left: (identifier) @parameters)
])
