"""Where people and programs meet the memory: the command line, MCP, HTTP and its page, and
retrievers.
"""
