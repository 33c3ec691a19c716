; Java: what makes Documents and scopes; java.scm, read with it, says the rest and how captures are named.
; Alone it is asked about the nodes of one body at a time (plain.py): each pattern fits within one member.

(method_declaration name: (identifier) @method.name body: (block)) @method
(constructor_declaration name: (identifier) @constructor.name) @constructor
(compact_constructor_declaration name: (identifier) @constructor.name) @constructor
(static_initializer) @initializer

(class_declaration name: (identifier) @class.name) @class
(interface_declaration name: (identifier) @class.name) @class
(enum_declaration name: (identifier) @class.name) @class
(record_declaration name: (identifier) @class.name) @class
(annotation_type_declaration name: (identifier) @class.name) @class
(enum_constant name: (identifier) @scope.name body: (class_body)) @scope
(object_creation_expression type: (_) @scope.name (class_body)) @scope
