"""The servers: MCP on stdin and stdout, and HTTP with MCP, an API and the page."""
