"""The marks that agents put round what they give to a model, by agent: as data. Pure.

In a note they could pass for the agent's own words, so `fence.py` makes them harmless. Collected
from what the agents and the readers of their transcripts publish. A name that is a plain word too,
such as `rules`, is a mark only where a tag follows it.
"""

from __future__ import annotations

from collections.abc import Mapping

# A sign between two words of a name may be any of `-`, `_` and a space.
HOST_MARKS: Mapping[str, tuple[str, ...]] = {
    "claude-code": (
        *(
            "user-prompt-submit-hook",
            "session-start-hook",
            "local-command-stdout",
            "local-command-stderr",
        ),
        *(
            "local-command-caveat",
            "command-name",
            "command-message",
            "command-args",
            "command-contents",
        ),
        *("bash-input", "bash-stdout", "bash-stderr", "task-notification", "teammate-message"),
        *(
            "agent-message",
            "cross-session-message",
            "tool-use-error",
            "ide-selection",
            "ide-opened-file",
        ),
        *("ide-diagnostics", "new-diagnostics", "persisted-output", "channel"),
    ),
    "claude-desktop": ("automated-reminder-from-anthropic",),
    "codex": (
        *(
            "environment-context",
            "user-instructions",
            "permissions-instructions",
            "skills-instructions",
        ),
        *("apps-instructions", "plugins-instructions", "turn-aborted", "collaboration-mode"),
        *("multi-agent-mode", "personality-spec", "model-switch", "token-budget", "goal-context"),
        *("subagent-notification", "recommended-plugins", "codex-internal-context"),
        *("user-shell-command", "realtime-conversation", "hook-prompt", "skill", "developer"),
    ),
    "gemini-cli": (
        *(
            "session-context",
            "hook-context",
            "state-snapshot",
            "activated-skill",
            "available-skills",
        ),
        "system-note",
    ),
    "cursor": (
        *("user-query", "additional-data", "attached-files", "open-and-recently-viewed-files"),
        *(
            "manually-attached-skills",
            "agent-skills",
            "agent-transcripts",
            "user-info",
            "user-rules",
        ),
        *("always-applied-workspace-rules", "always-applied-workspace-rule", "rules"),
        "agent-requestable-workspace-rules",
    ),
    "vscode": (
        *("reminderinstructions", "importantreminders", "userrequest", "environment-info"),
        *("workspace-info", "editorcontext", "agentpersistence", "attachments"),
    ),
    "windsurf": ("ephemeral-message", "user-information", "additional-metadata"),
    "zed": ("fetched-urls",),
    "opencode": ("skill-content", "skill-resources", "skill-instructions", "skill-files"),
    "openclaw": ("relevant-memories",),
    "hermes": ("memory-context",),
    "cline": ("environment-details", "explicit-instructions", "task-resumption"),
    "goose": ("info-msg",),
}


def host_marks() -> tuple[list[str], list[str]]:
    """Expressions for those that only an agent writes, and for those that are a word of code or
    prose too.
    """
    names = sorted({name for names in HOST_MARKS.values() for name in names})
    return (
        [name.replace("-", "[-_ ]") for name in names if "-" in name],
        [name for name in names if "-" not in name],
    )
