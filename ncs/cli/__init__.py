"""The `ncs` command."""
