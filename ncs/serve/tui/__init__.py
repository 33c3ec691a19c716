"""Interactive search in a terminal: `ncs` alone; needs the `tui` extra."""
