"""Ways to use an index: the HTTP server, the MCP server, the interactive search, editors."""
