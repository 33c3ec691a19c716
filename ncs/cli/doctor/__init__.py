"""`ncs doctor`: what is installed, what the index holds, what is stale or skipped, and what to type."""
