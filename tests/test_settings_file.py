"""Writing one setting: into the right file, and nothing else of it changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.settings import load, user_file
from notewell.settings_file import write_setting
from tests.conftest import Write


def test_what_a_workspace_may_decide_is_beside_the_notes(root: Path, write: Write) -> None:
    write("notewell.toml", '# mine\nextra_paths = ["a"]  # why\n\n[search]\nlimit = 3\n')
    assert write_setting("folder", "all", root, {}) == root / "notewell.toml"
    text = (root / "notewell.toml").read_text()
    assert {"# mine", 'extra_paths = ["a"]  # why', "[search]", 'folder = "all"'} <= set(
        text.splitlines()
    )
    own = load(root, env={})
    assert (own.folder, own.extra_paths, own.search.limit) == ("all", ("a",), 3)
    write_setting("folder", "never", root, {})
    assert (root / "notewell.toml").read_text() == text.replace('"all"', '"never"')


def test_what_is_yours_alone_is_in_your_own_file(root: Path, own_environment: Path) -> None:
    file = write_setting("sources", ["memory", "sessions"], root, os.environ)
    assert file == user_file(os.environ)
    assert file.stat().st_mode & 0o777 == 0o600
    assert load(root, env=os.environ).sources == ("memory", "sessions")
    assert list(root.iterdir()) == []


def test_a_link_to_your_own_file_stays_a_link(root: Path, own_environment: Path) -> None:
    file, kept = user_file(os.environ), own_environment / "dotfiles.toml"
    file.parent.mkdir(parents=True)
    kept.write_text("# kept\n")
    file.symlink_to(kept)
    write_setting("sources", ["memory"], root, os.environ)
    assert file.is_symlink()
    assert kept.read_text() == '# kept\nsources = ["memory"]\n'


def test_a_link_out_of_the_workspace_is_not_written_through(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.toml"
    outside.write_text("x = 1\n")
    (root / "notewell.toml").symlink_to(outside)
    with pytest.raises(SettingsError):
        write_setting("folder", "all", root, {})
    assert outside.read_text() == "x = 1\n"


@pytest.mark.parametrize("text", ["folder = ", "\0", "[a\n"])
def test_a_broken_file_is_left_alone(root: Path, write: Write, text: str) -> None:
    write("notewell.toml", text)
    with pytest.raises(SettingsError) as raised:
        write_setting("folder", "all", root, {})
    assert raised.value.hint
    assert (root / "notewell.toml").read_text() == text
