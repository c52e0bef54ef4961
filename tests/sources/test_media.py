"""Images and sound: found by the rules of extra paths, labelled for keywords, and handed to models
that see.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notewell import Memory
from notewell.embed.remote.remote_embedder import RemoteEmbedder, remote_embedder
from notewell.errors import SettingsError
from notewell.index.documents import embed_text
from notewell.index.walk import Walk
from notewell.search.evidence import ask
from notewell.settings import EmbedSettings
from notewell.sources.files import FileSource
from notewell.sources.media import KINDS, MediaSource
from notewell.store.sqlite.store import SqliteStore
from notewell.surfaces.cli.commands import run
from notewell.types import Filters
from tests.conftest import PATIENT, Write
from tests.embed.provider_server import KEY, ProviderServer, serving

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


def paths(source: MediaSource) -> list[str]:
    return [document.path for document in source.scan().documents]


def test_nothing_is_found_unless_it_is_named(root: Path, write: Write) -> None:
    write("photos/a.png", PNG)
    assert paths(MediaSource(root, paths=())) == []


def test_images_and_sound_of_named_places_are_found_and_nothing_else(
    root: Path, write: Write
) -> None:
    for ending in KINDS:
        write(f"photos/deep/file{ending}", PNG)
    for name in (
        "photos/note.md",
        "photos/clip.mp4",
        "photos/SHOUT.PNG",
        "photos/.hidden.png",
        "other/b.png",
    ):
        write(name, PNG)
    expected = sorted(["photos/SHOUT.PNG", *(f"photos/deep/file{ending}" for ending in KINDS)])
    assert paths(MediaSource(root, paths=["photos"])) == expected
    assert paths(MediaSource(root, paths=["photos/**/*.mp3"])) == ["photos/deep/file.mp3"]
    assert paths(MediaSource(root, paths=["photos/*/file*"])) == sorted(
        f"photos/deep/file{e}" for e in KINDS
    )
    assert paths(MediaSource(root, paths=["other/b.png"])) == ["other/b.png"]


def test_what_is_passed_over_has_its_reason(root: Path, write: Write, tmp_path: Path) -> None:
    write("photos/large.png", PNG * 10)
    write("photos/note.md", "text")
    (tmp_path / "secret.png").write_bytes(PNG)
    (root / "photos/link.png").symlink_to(tmp_path / "secret.png")
    found = MediaSource(root, paths=["photos", "photos/note.md", "nowhere"], max_bytes=500).scan()
    assert found.documents == ()
    assert {skipped.path: skipped.reason for skipped in found.skipped} == {
        "photos/large.png": "larger than 500 bytes (multimodal.max_bytes)",
        "photos/link.png": "symbolic link that leaves the workspace",
        "photos/note.md": "media path: not a known kind of file",
        "nowhere": "media path: no such file or folder",
    }


def test_ignore_rules_hold(root: Path, write: Write) -> None:
    write("photos/a.png", PNG)
    write("photos/b.png", PNG)
    write(".notewellignore", "b.png\n")
    assert paths(MediaSource(root, paths=["photos"])) == ["photos/a.png"]


def label(source: MediaSource, path: str) -> str:
    return next(source.read(d) for d in source.scan().documents if d.path == path)


def test_the_label_has_name_folder_alt_text_and_a_mark_of_the_content(
    root: Path, write: Write
) -> None:
    write("photos/summer_2026/beach-at.noon.png", PNG)
    source = MediaSource(root, paths=["photos"])
    path = "photos/summer_2026/beach-at.noon.png"
    before = label(source, path)
    assert before.splitlines()[:3] == ["# beach at noon", "", f"Image {path} in summer 2026"]
    write(path + ".txt", "Two dogs\n\n# on a pier")
    assert "\nTwo dogs # on a pier\n" in label(source, path)
    (root / (path + ".txt")).unlink()
    write(path, PNG + b"!")
    assert label(source, path).splitlines()[:3] == before.splitlines()[:3]
    assert label(source, path) != before


def test_a_new_alt_text_is_a_change_that_a_scan_sees(root: Path, write: Write) -> None:
    write("photos/a.png", PNG, age_s=100)
    source = MediaSource(root, paths=["photos"])
    (before,) = source.scan().documents
    write("photos/a.png.txt", "Two dogs", age_s=10)
    (after,) = source.scan().documents
    assert after.mtime_ns > before.mtime_ns
    assert after.size > before.size


def test_an_alt_text_that_is_no_file_of_the_workspace_is_not_read(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("photos/a.png", PNG)
    write("photos/b.png", PNG)
    (tmp_path / "secret").write_text("password hunter2")
    (root / "photos/a.png.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "photos/b.png.txt")
    source = MediaSource(root, paths=["photos"])
    assert "hunter2" not in label(source, "photos/a.png")
    assert label(source, "photos/b.png")


def test_a_picture_that_became_a_link_out_is_not_sent(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("photos/a.png", PNG)
    source = MediaSource(root, paths=["photos"])
    source.scan()
    part = source.part("photos/a.png", "label")
    assert part is not None
    assert part.read() == PNG
    (root / "photos/a.png").unlink()
    (root / "photos/a.png").symlink_to(put_aside := tmp_path / "secret.png")
    put_aside.write_bytes(b"secret")
    with pytest.raises(OSError, match="leads out"):
        part.read()


def test_an_odd_pattern_is_skipped_with_the_reason(root: Path, write: Write) -> None:
    write("photos/a.png", PNG)
    found = MediaSource(root, paths=["photos", "photos/[z-a].png"]).scan()
    assert [d.path for d in found.documents] == ["photos/a.png"]
    assert [(s.path, s.reason) for s in found.skipped] == [
        ("media path 'photos/[z-a].png'", "it is skipped, because its range z-a runs backwards")
    ]


def test_an_empty_file_is_none(root: Path, write: Write) -> None:
    write("photos/a.png", b"")
    source = MediaSource(root, paths=["photos"])
    with pytest.raises(ValueError, match="an empty file"):
        label(source, "photos/a.png")


@pytest.fixture
def engine(root: Path, tmp_path: Path) -> Iterator[Walk]:
    store = SqliteStore(tmp_path / "index.sqlite")
    yield Walk([FileSource(root), MediaSource(root, paths=["photos"])], store)
    store.close()


def chunks(engine: Walk) -> list[Any]:
    store = engine.store
    assert isinstance(store, SqliteStore)
    return list(store.documents.chunks(store.vectors.missing("any")).values())


def test_each_file_is_one_passage_that_keywords_find(
    root: Path, write: Write, engine: Walk
) -> None:
    write("memory/note.md", "Nothing about animals.")
    write("photos/beach.png", PNG)
    write("photos/beach.png.txt", "Two dogs on a pier. " * 100)
    write("photos/speech.mp3", b"ID3 sound")
    report = engine.sync()
    assert (report.added, report.chunks) == (3, 3)
    found = engine.store.keywords.lexical(
        ask("dogs pier", engine.store.keywords.term_counts).sought, 5, Filters()
    )
    assert [engine.store.documents.chunks([one.row])[one.row].path for one in found] == [
        "photos/beach.png"
    ]
    assert engine.sync().unchanged == 3
    (root / "photos/beach.png").unlink()
    assert engine.sync().dropped == 1


@pytest.fixture
def seeing() -> Iterator[tuple[RemoteEmbedder, ProviderServer]]:
    with serving(ProviderServer("gemini", dim=64)) as server:
        own = EmbedSettings(model="gemini", url=server.url, key=KEY, dim=64)
        model = remote_embedder("gemini", "", own, {})
        yield model, server
        model.close()
        assert server.problems == []


def test_a_model_that_sees_gets_the_file_with_the_label(
    write: Write, engine: Walk, seeing: tuple[RemoteEmbedder, ProviderServer]
) -> None:
    write("photos/beach.png", PNG)
    write("photos/speech.mp3", b"ID3 sound")
    engine.sync()
    model, server = seeing
    source = MediaSource(engine.sources[1].root, paths=["photos"])  # type: ignore[attr-defined]
    inputs = [source.part(chunk.path, embed_text(chunk)) or "" for chunk in chunks(engine)]
    rows = model.embed(inputs, "document")
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    sent = [body["requests"][0]["content"]["parts"] for *_, body in server.requests]
    assert sorted(parts[1]["inlineData"]["mimeType"] for parts in sent) == [
        "audio/mpeg",
        "image/png",
    ]
    assert all(parts[0]["text"].startswith("title: none | text: ") for parts in sent)
    plain = model.embed([str(text) for text in inputs], "document")
    assert not np.allclose(rows, plain)


def test_a_name_that_is_spelt_in_another_unicode_form_still_leads_to_its_file(
    root: Path, write: Write
) -> None:
    write("photos/cafe\u0301.png", PNG)
    source = MediaSource(root, paths=["photos"])
    (document,) = source.scan().documents
    assert document.path == "photos/caf\u00e9.png"
    part = source.part(document.path, "label")
    assert part is not None
    assert os.path.exists(part.location)


def test_a_path_that_only_an_index_names_is_never_handed_out(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("photos/a.png", PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    write("other/b.png", PNG)
    source = MediaSource(root, paths=["photos"])
    assert source.part("photos/a.png", "label") == "label", "looked for without a scan before"
    for path in ("../secret.png", str(tmp_path / "secret.png"), "other/b.png", "photos/none.png"):
        assert source.part(path, "label") is None


def test_each_picture_is_one_passage_however_short_passages_are(root: Path, write: Write) -> None:
    write("photos/a.png", PNG)
    write("photos/a.png.txt", "狗在码头上" * 100)
    with Memory.open(
        root, embed__model="none", multimodal__paths="photos", chunk__tokens=40, chunk__overlap=0
    ) as memory:
        assert memory.sync().chunks == 1


@pytest.fixture
def gemini() -> Iterator[tuple[dict[str, Any], ProviderServer]]:
    with serving(ProviderServer("gemini", dim=64)) as server:
        own = {
            "embed__model": "gemini",
            "embed__url": server.url,
            "embed__key": KEY,
            "embed__dim": 64,
        }
        yield own, server
        assert server.problems == []


def files_sent(server: ProviderServer) -> list[str]:
    requests = [one for *_, body in server.requests for one in body["requests"]]
    return [
        p["inlineData"]["mimeType"]
        for one in requests
        for p in one["content"]["parts"]
        if "inlineData" in p
    ]


def test_pictures_are_off_unless_asked_for(
    root: Path, write: Write, gemini: tuple[dict[str, Any], ProviderServer]
) -> None:
    write("photos/beach.png", PNG)
    write("memory/note.md", "A note.")
    with Memory.open(root, env=PATIENT, **gemini[0]) as memory:
        assert memory.sync().chunks == 1
    assert files_sent(gemini[1]) == []


def test_a_workspace_file_cannot_ask_for_them(root: Path, write: Write) -> None:
    write("notewell.toml", '[multimodal]\npaths = ["photos"]\n')
    with pytest.raises(SettingsError, match=r"multimodal\.paths"):
        Memory.open(root, env=PATIENT)


def test_through_memory_the_file_is_sent_once_and_found_alone_by_its_source(
    root: Path, write: Write, gemini: tuple[dict[str, Any], ProviderServer]
) -> None:
    own, server = gemini
    write("photos/beach.png", PNG)
    write("photos/beach.png.txt", "Two dogs on a pier")
    write("memory/note.md", "The dogs are at home.")
    with Memory.open(root, env=PATIENT, multimodal__paths="photos", **own) as memory:
        report = memory.sync()
        assert (report.embedded, report.pending) == (2, 0)
        assert files_sent(server) == ["image/png"]
        found = memory.search("dogs", filters=Filters(source="media"))
        assert [h.chunk.path for h in found.hits] == ["photos/beach.png"]
        assert "Two dogs" in memory.get("photos/beach.png").text
        entries, _ = memory.timeline(filters=Filters(source="media"))
        assert [e.chunk.path for e in entries] == ["photos/beach.png"]
        write("photos/beach.png", PNG + b"another picture")
        assert memory.sync().embedded == 1
        assert files_sent(server) == ["image/png"] * 2
        (root / "photos/beach.png").rename(root / "photos/sea.png")
        (root / "photos/beach.png.txt").rename(root / "photos/sea.png.txt")
        memory.sync()
        assert memory.status().pending == 0
    with Memory.open(root, env=PATIENT, **own) as memory:
        assert memory.sync().dropped == 1, "no longer named: no longer there"


def test_the_commands_take_media_for_a_source(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("photos/beach.png", PNG)
    place = [
        "-w",
        str(root),
        "--model",
        "hashed",
        "--setting",
        "multimodal.paths=photos",
        "--source",
        "media",
        "--json",
    ]
    for command in (["search", "beach"], ["timeline"]):
        assert run([*command, *place]) == 0
        assert "photos/beach.png" in capsys.readouterr().out
