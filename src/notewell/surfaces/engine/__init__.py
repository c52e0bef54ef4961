"""The engine: one warm process for all windows of a workspace. What callers load of it is small on
purpose.
"""
