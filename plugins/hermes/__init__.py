"""notewell as a memory provider of Hermes: register_memory_provider gets one that searches in this
process.
"""

from notewell.surfaces.hermes_provider import register

__all__ = ["register"]
