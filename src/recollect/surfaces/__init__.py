"""Where people and programs meet the memory: command line now, MCP, HTTP and a page later."""
