"""The programs whose conversations are read: one row each."""

from __future__ import annotations

from notewell.sources.sessions.claude_code import CLAUDE_CODE
from notewell.sources.sessions.cline import CLINE
from notewell.sources.sessions.codex import CODEX
from notewell.sources.sessions.copilot_cli import COPILOT_CLI
from notewell.sources.sessions.cursor import CURSOR
from notewell.sources.sessions.gemini_cli import GEMINI_CLI
from notewell.sources.sessions.goose import GOOSE
from notewell.sources.sessions.hermes_sessions import HERMES
from notewell.sources.sessions.openclaw_sessions import OPENCLAW, OPENCLAW_DATABASE
from notewell.sources.sessions.opencode import OPENCODE
from notewell.sources.sessions.qwen_code import QWEN_CODE

FILES = (CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCLAW, COPILOT_CLI, CLINE, QWEN_CODE)
TABLES = (OPENCLAW_DATABASE, OPENCODE, CURSOR, HERMES, GOOSE)
