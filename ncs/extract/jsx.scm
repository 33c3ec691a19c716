; Elements in JavaScript and TSX: a component that is used is called.

((jsx_opening_element name: (identifier) @calls)
  (#match? @calls "^[A-Z]"))
((jsx_self_closing_element name: (identifier) @calls)
  (#match? @calls "^[A-Z]"))
(jsx_opening_element name: (member_expression property: (property_identifier) @calls))
(jsx_self_closing_element name: (member_expression property: (property_identifier) @calls))
(jsx_text) @literals
