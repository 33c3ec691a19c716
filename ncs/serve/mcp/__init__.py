"""Search for coding agents: the MCP server of `ncs mcp`, over stdio or HTTP; needs the `mcp` extra."""
