"""The commands of `ncs`, by topic. Thin: each parses its options and calls the engine. The only package with typer."""
