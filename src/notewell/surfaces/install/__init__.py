"""Writing our MCP entry into the settings of agents."""
