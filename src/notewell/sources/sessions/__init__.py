"""Conversations with agents: a table of programs, a module for each, and what is kept when a
program deletes them.
"""
