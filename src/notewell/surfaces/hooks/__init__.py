"""The hooks of agents: what a host sends on stdin, what it gets back, and what is kept in the
background.
"""
