"""People judge functions for queries on a local page, as CodeSearchNet's experts did (its section 3)."""
