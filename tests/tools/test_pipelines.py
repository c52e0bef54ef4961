"""The pipelines: they call targets of the Makefile, on the systems and versions that are promised,
with few rights.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = {
    p.name: p.read_text(encoding="utf-8")
    for p in sorted((ROOT / ".github/workflows").glob("*.yml"))
}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))


def called(text: str) -> set[str]:
    lines = re.findall(r"^\s*(?:- run: )?make ((?:[a-z-]+ ?)+)", text, re.MULTILINE)
    return {target for line in lines for target in line.split()}


def test_every_target_that_is_called_exists_and_is_phony() -> None:
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    found = called("\n".join([*WORKFLOWS.values(), run]))
    assert {
        "test",
        "check",
        "coverage",
        "smoke",
        "docs",
        "sbom",
        "bundle",
        "man",
        "tagged",
    } <= found
    assert found <= TARGETS
    phony = set(re.sub(r"\\\n", " ", MAKEFILE).partition(".PHONY:")[2].partition("\n")[0].split())
    assert phony == {target for target in TARGETS if (ROOT / target) != ROOT / "model"}


def test_the_matrix_has_every_version_and_system_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [
        c.rpartition(" :: ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)
    ]
    for version in versions:
        assert f'"{version}"' in WORKFLOWS["ci.yml"]
    assert "[ubuntu-latest, macos-latest, windows-latest]" in WORKFLOWS["ci.yml"]


def test_the_night_runs_the_long_suites() -> None:
    assert "suite: [slow, faults]" in WORKFLOWS["nightly.yml"]
    assert {"slow", "faults"} <= TARGETS


def test_a_release_is_attested_and_published_without_a_key() -> None:
    text = WORKFLOWS["release.yml"]
    for words in (
        "id-token: write",
        "attest-build-provenance",
        "attest-sbom",
        "gh-action-pypi-publish",
    ):
        assert words in text
    assert "secrets." not in text
    assert "password" not in text


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_only_read_unless_a_job_says_more(name: str) -> None:
    head = WORKFLOWS[name].partition("\njobs:")[0]
    assert "permissions:\n  contents: read" in head
    assert "pull_request_target" not in WORKFLOWS[name]
    assert WORKFLOWS[name].count("actions/checkout@") == WORKFLOWS[name].count(
        "persist-credentials: false"
    )


def test_the_container_is_no_root_and_has_a_health_check() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    last = image.rpartition("\nFROM ")[2]
    assert "\nUSER notewell\n" in last
    assert "\nHEALTHCHECK " in last
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", image, re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in (ROOT / ".dockerignore").read_text(encoding="utf-8")
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert "./docker/init.sh" in compose
    assert '"127.0.0.1:8765:8765"' in compose
