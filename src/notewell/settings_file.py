"""Writing one setting into a settings file: the rest of the file stays as it is, comments and
all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from notewell.errors import SettingsError
from notewell.opener import ANYWHERE, HINT, MOST_SETTINGS_BYTES, inside
from notewell.settings import FIELDS, WORKSPACE_FILE, user_file


def file_for(key: str, root: Path, env: Mapping[str, str]) -> Path:
    """Where a setting belongs: what a workspace may not decide is in the user's own file, all else
    beside the notes.
    """
    return user_file(env) if FIELDS[key].metadata["private"] else root / WORKSPACE_FILE


def write_setting(
    key: str,
    value: str | bool | Sequence[str],  # noqa: FBT001 - whatever a setting can be
    root: Path,
    env: Mapping[str, str],
) -> Path:
    """Sets a setting in the file where it belongs, and returns the file."""
    import tomlkit  # noqa: PLC0415 - only for those who write settings
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    file = file_for(key, root, env)
    own = file.parent == root
    # the user's own may be a link to where they keep all of them
    file = file if own else Path(os.path.realpath(file))
    opener = inside(root) if own else ANYWHERE
    try:
        try:
            text = opener.read(file, most=MOST_SETTINGS_BYTES).decode("utf-8")
        except FileNotFoundError:
            text = ""
            file.parent.mkdir(parents=True, exist_ok=True)
        document = tomlkit.parse(text)
        section, _, name = key.rpartition(".")
        table = document.setdefault(section, tomlkit.table()) if section else document
        table[name] = value if isinstance(value, str | bool) else list(value)
        made = tomlkit.dumps(document)
        import tomllib  # noqa: PLC0415

        tomllib.loads(made)  # what is written can be read again
        opener.replace(file, made.encode("utf-8"), mode=0o644 if own else 0o600)
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror}", hint=HINT) from error
    except (TOMLKitError, ValueError) as error:
        raise SettingsError(
            f"{file} is not valid TOML: {error}", hint="fix it, or move it away"
        ) from error
    return file
