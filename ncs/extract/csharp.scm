; C#. Captures are named by the fields of a Document (ncs/types.py); `@method` and the like are kinds of documents, each
; with its `.name`; `@class` is whatever else gives its name to a scope. A property counts where it has code.

(method_declaration name: (identifier) @method.name body: (_)) @method
(constructor_declaration name: (identifier) @constructor.name body: (_)) @constructor
(destructor_declaration name: (identifier) @method.name) @method
(operator_declaration operator: _ @method.name body: (_)) @method
(conversion_operator_declaration type: (_) @method.name body: (_)) @method
(indexer_declaration "this" @property.name) @property
(local_function_statement name: (identifier) @function.name body: (_)) @function
(property_declaration name: (identifier) @property.name value: (arrow_expression_clause)) @property
(property_declaration
  name: (identifier) @property.name accessors: (accessor_list . (accessor_declaration body: (_)))) @property

(class_declaration name: (identifier) @class.name) @class
(interface_declaration name: (identifier) @class.name) @class
(struct_declaration name: (identifier) @class.name) @class
(record_declaration name: (identifier) @class.name) @class
(enum_declaration name: (identifier) @class.name) @class
(namespace_declaration name: (_) @class.name) @class

(invocation_expression function: (identifier) @calls)
(invocation_expression function: (generic_name (identifier) @calls))
(invocation_expression function: (member_access_expression name: (identifier) @calls))
(invocation_expression function: (member_access_expression name: (generic_name (identifier) @calls)))
(invocation_expression function: (conditional_access_expression (member_binding_expression name: (identifier) @calls)))
(object_creation_expression type: (identifier) @calls)
(object_creation_expression type: (generic_name (identifier) @calls))
(object_creation_expression type: (qualified_name name: (identifier) @calls))
(attribute name: (identifier) @calls @test.attribute)
(attribute name: (qualified_name name: (identifier) @test.attribute))

(parameter name: (identifier) @parameters)
(parameter_list type: (_) name: (identifier) @parameters)
(implicit_parameter) @parameters

(enum_member_declaration name: (identifier) @enums)
[(string_literal_content) (string_content) (verbatim_string_literal) (raw_string_content)] @literals
[(escape_sequence) (character_literal) (interpolation_start)] @nothing
(comment) @comments
