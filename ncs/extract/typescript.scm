; TypeScript: what JavaScript has otherwise.

(public_field_definition
  name: (_) @method.name value: [(arrow_function) (function_expression) (generator_function)]) @method

(class_declaration name: (type_identifier) @class.name) @class
(abstract_class_declaration name: (type_identifier) @class.name) @class
(class name: (type_identifier) @class.name) @class
(variable_declarator name: (identifier) @class.name value: (class !name)) @class
(interface_declaration name: (type_identifier) @class.name) @class
(enum_declaration name: (identifier) @class.name) @class
(internal_module name: (identifier) @class.name) @class
(module name: (identifier) @class.name) @class

(class_body [(decorator) (method_signature)] @preamble)
(program (function_signature) @preamble)
(export_statement declaration: (function_signature)) @preamble
([(function_signature) (export_statement declaration: (function_signature))] . (comment) @preamble
  (#not-match? @preamble "^/[*]"))

(required_parameter pattern: (identifier) @parameters)
(optional_parameter pattern: (identifier) @parameters)
(required_parameter pattern: (rest_pattern (identifier) @parameters))

(enum_body [(property_identifier) @enums (enum_assignment name: (property_identifier) @enums)])
(type_identifier) @types
