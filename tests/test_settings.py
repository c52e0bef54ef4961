from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from notewell.errors import SettingsError
from notewell.model_names import SAFE_MODELS
from notewell.settings import (
    FIELDS,
    EmbedSettings,
    Settings,
    cache_folder,
    data_folder,
    env_name,
    index_flags,
    load,
    owner_of_address,
    user_file,
)
from notewell.settings_checks import (
    BOUNDED,
    FREELY,
    LEAST,
    LOWERED,
    PARTLY,
    refuse_unsafe,
    without_password,
)
from notewell.text.chunk import ChunkSize, Passage, chunk
from notewell.text.markdown import parse


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def user(env: dict[str, str], text: str) -> Path:
    file = user_file(env)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def own(root: Path, text: str) -> Path:
    file = root / "notewell.toml"
    file.write_text(text)
    return file


def origin(settings: Settings, key: str) -> tuple[Any, str]:
    return next((value, origin) for name, value, origin, _ in settings.items() if name == key)


def test_without_a_word_the_defaults_hold(root: Path, env: dict[str, str]) -> None:
    settings = load(root, env=env)
    assert settings == Settings()
    assert {origin for _, _, origin, _ in settings.items()} == {"default"}


def test_each_layer_wins_over_those_before_it_and_its_name_is_kept(
    root: Path, env: dict[str, str]
) -> None:
    key = "search.limit"
    assert origin(load(root, env=env), key) == (6, "default")
    by_user = user(env, "[search]\nlimit = 7")
    assert origin(load(root, env=env), key) == (7, str(by_user))
    by_workspace = own(root, "[search]\nlimit = 8")
    assert origin(load(root, env=env), key) == (8, str(by_workspace))
    env["NOTEWELL_SEARCH_LIMIT"] = "9"
    assert origin(load(root, env=env), key) == (9, "NOTEWELL_SEARCH_LIMIT")
    assert origin(load(root, env=env, flags={key: 10}), key) == (10, "flag")


def test_layers_mix_key_by_key(root: Path, env: dict[str, str]) -> None:
    user(env, '[search]\nlimit = 7\nprofile = "rrf"')
    own(root, "max_file_bytes = 1000\n[search]\nlimit = 8")
    settings = load(root, env={**env, "NOTEWELL_EMBED_MODEL": "none"})
    assert (settings.search.limit, settings.search.profile, settings.max_file_bytes) == (
        8,
        "rrf",
        1000,
    )
    assert settings.embed.model == "none"


def test_every_setting_has_its_variable_and_says_what_it_is_for() -> None:
    names = {key: env_name(key) for key, *_ in Settings().items()}
    assert names["embed.model"] == "NOTEWELL_EMBED_MODEL"
    assert names["extra_paths"] == "NOTEWELL_EXTRA_PATHS"
    assert len(set(names.values())) == len(names)
    assert all(doc for *_, doc in Settings().items())


def test_variables_are_read_as_the_type_of_their_setting(root: Path, env: dict[str, str]) -> None:
    env |= {
        "NOTEWELL_EXTRA_PATHS": "docs:/etc/notes: ",
        "NOTEWELL_EMBED_BUDGET_S": "0.5",
        "NOTEWELL_SOURCES": "memory",
    }
    settings = load(root, env=env)
    assert settings.extra_paths == ("docs", "/etc/notes")
    assert settings.embed.budget_s == 0.5
    assert settings.sources == ("memory",)


def test_stages_of_a_variable_stand_between_semicolons(root: Path, env: dict[str, str]) -> None:
    env["NOTEWELL_SEARCH_STAGES"] = "decay(half_life_days=90, floor=0.5); mmr ;"
    assert load(root, env=env).search.stages == ("decay(half_life_days=90, floor=0.5)", "mmr")


@pytest.mark.parametrize("key", ["rerank", "rerank_url", "rerank_model", "rerank_shape"])
def test_a_workspace_file_may_not_choose_who_reads_the_notes(
    root: Path, env: dict[str, str], key: str
) -> None:
    own(root, f'[search]\n{key} = "http"')
    with pytest.raises(SettingsError, match=rf"may not set search\.{key}") as caught:
        load(root, env=env)
    assert f"NOTEWELL_SEARCH_{key.upper()}" in caught.value.hint


@pytest.mark.parametrize("key", [key for key, *_ in Settings().items() if key.startswith("hook.")])
def test_a_workspace_file_may_not_change_the_hooks(
    root: Path, env: dict[str, str], key: str
) -> None:
    own(root, f"{key} = 1")
    with pytest.raises(SettingsError, match=rf"may not set {key}"):
        load(root, env=env)


def test_no_setting_holds_the_key_of_a_reranker(root: Path, env: dict[str, str]) -> None:
    assert not [
        key for key, *_ in Settings().items() if key.startswith("search.") and key.endswith("key")
    ]
    user(env, '[search]\nrerank_key = "secret"')
    with pytest.raises(SettingsError, match="no setting is called"):
        load(root, env=env)


def test_a_workspace_file_may_not_say_where_the_index_is(root: Path, env: dict[str, str]) -> None:
    own(root, '[index]\npath = "/data/elsewhere.sqlite"')
    with pytest.raises(SettingsError, match=r"may not set index\.path") as caught:
        load(root, env=env)
    assert "NOTEWELL_INDEX_PATH" in caught.value.hint
    (root / "notewell.toml").unlink()
    user(env, '[index]\npath = "/data/elsewhere.sqlite"')
    assert load(root, env=env).index.path == "/data/elsewhere.sqlite"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('sources = ["memory", "sessions"]', "sources"),
        ('[sessions]\npaths = ["chats"]', r"sessions\.paths"),
        ("[sessions]\nall_projects = true", r"sessions\.all_projects"),
        ("[redact]\nenabled = false", r"redact\.enabled"),
    ],
)
def test_a_workspace_file_may_not_read_conversations_nor_let_secrets_in(
    root: Path, env: dict[str, str], text: str, key: str
) -> None:
    own(root, text)
    with pytest.raises(SettingsError, match=rf"may not set {key}"):
        load(root, env=env)
    (root / "notewell.toml").unlink()
    user(env, text)
    assert load(root, env=env).origins


def test_every_place_adds_its_patterns_and_takes_none_away(root: Path, env: dict[str, str]) -> None:
    user(env, "[redact]\npatterns = ['ACME-[0-9]{6}', 'x,y']")
    own(root, "[redact]\npatterns = ['hush', 'x,y']")
    settings = load(
        root,
        env=env | {"NOTEWELL_REDACT_PATTERNS": "a{1,2}\nb"},
        flags={"redact.patterns": ["flag"]},
    )
    assert settings.redact.patterns == ("ACME-[0-9]{6}", "x,y", "a{1,2}", "b", "flag")
    assert settings.workspace_patterns == ("hush", "x,y"), (
        "they may be somebody else's, and run under a bound"
    )
    shown = {key: value for key, value, _, _ in settings.items()}
    assert shown["redact.patterns"] == ("ACME-[0-9]{6}", "x,y", "a{1,2}", "b", "flag", "hush")


def test_the_patterns_of_a_workspace_file_are_shown_with_their_origin(
    root: Path, env: dict[str, str]
) -> None:
    own(root, "[redact]\npatterns = ['hush']")
    assert load(root, env=env).origins["redact.patterns"] == str(root / "notewell.toml")
    own(root, "[redact]\npatterns = 3")
    with pytest.raises(SettingsError, match="must be a list of texts"):
        load(root, env=env)


@pytest.mark.parametrize(
    "value",
    [
        '["/etc"]',
        '["../other"]',
        '["docs/../../x"]',
        '["~/notes"]',
        '[" /etc"]',
        '"docs:/etc"',
        '["docs", "/etc"]',
    ],
)
def test_a_workspace_file_may_only_name_paths_inside_the_workspace(
    root: Path, env: dict[str, str], value: str
) -> None:
    own(root, f"extra_paths = {value}")
    with pytest.raises(SettingsError, match="inside the workspace") as caught:
        load(root, env=env)
    assert "your own settings file" in caught.value.hint


def test_a_workspace_file_may_name_paths_inside_the_workspace(
    root: Path, env: dict[str, str]
) -> None:
    own(root, 'extra_paths = ["docs", "notes/**/*.md"]')
    assert load(root, env=env).extra_paths == ("docs", "notes/**/*.md")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[search]\nlimit = "many"', "a whole number"),
        ("[search]\nlimit = 2.5", "a whole number"),
        ("[search]\nlimit = true", "a whole number"),
        ('[embed]\nbudget_s = "soon"', "a number"),
        ("[embed]\nmodel = 3", "a text"),
        ("extra_paths = [1]", "a list of texts"),
        ("extra_paths = 1", "a list of texts"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_right_one(
    root: Path, env: dict[str, str], text: str, wanted: str
) -> None:
    file = own(root, text)
    with pytest.raises(SettingsError, match=f"must be {wanted}, not") as caught:
        load(root, env=env)
    assert str(file) in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[search]\nlimt = 3", "did you mean search.limit?"),
        ("[serch]\nlimit = 3", "did you mean search.limit?"),
        ("[embed]\nmodle = 'x'", "did you mean embed.model?"),
        ("colour = 'red'", "notewell config lists all settings"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(
    root: Path, env: dict[str, str], text: str, hint: str
) -> None:
    own(root, text)
    with pytest.raises(SettingsError, match="no setting is called") as caught:
        load(root, env=env)
    assert caught.value.hint == hint


def test_an_unknown_flag_is_refused_too(root: Path, env: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"no setting is called 'search\.limmit'"):
        load(root, env=env, flags={"search.limmit": 3})


@pytest.mark.parametrize("data", [b"[search", b"\xff\xfe", b"limit = = 3"])
def test_a_file_that_is_no_toml_is_named(root: Path, env: dict[str, str], data: bytes) -> None:
    (root / "notewell.toml").write_bytes(data)
    with pytest.raises(SettingsError, match=r"notewell\.toml is not valid TOML"):
        load(root, env=env)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"chunk.tokens": 10}, "at least 40"),
        ({"chunk.overlap": 200}, "less than half"),
        ({"search.limit": 0}, "at least 1"),
        ({"sources": ["mail"]}, "memory"),
        ({"sources": []}, "sessions"),
        ({"search.session_share": 1.5}, "from 0 to 1"),
        ({"search.pool": -1}, "at least 1, or 0"),
        ({"search.stages": ["mmr"] * 33}, "at most 32"),
        ({"watch.poll_s": 0.001}, "at least 0.1, or 0"),
        ({"search.rerank": "remote"}, "none, local or http"),
        ({"search.rerank": "http"}, "address of the reranker"),
        ({"search.rerank_shape": "openai"}, "jina or tei"),
        ({"search.rerank_depth": 0}, "at least 1"),
        ({"search.rerank_weight": 1.5}, "from 0 to 1"),
        ({"search.rerank_weight": -0.5}, "from 0 to 1"),
        ({"search.rerank_weight": float("nan")}, "from 0 to 1"),
        ({"embed.deadline_s": 0.0}, "above 0"),
        ({"embed.trial_s": -1.0}, "above 0"),
        ({"embed.cache_mb": -1.0}, "at least 0"),
    ],
)
def test_values_that_make_no_sense_are_refused(
    root: Path, env: dict[str, str], flags: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(root, env=env, flags=flags)
    assert words in caught.value.hint


def test_folders_follow_the_xdg_variables(tmp_path: Path) -> None:
    env = {"XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/c", "XDG_CONFIG_HOME": "/s"}
    assert [str(f) for f in (data_folder(env), cache_folder(env), user_file(env))] == [
        "/d/notewell",
        "/c/notewell",
        "/s/notewell/config.toml",
    ]
    assert data_folder({}) == Path("~/.local/share/notewell").expanduser()


@pytest.mark.parametrize(
    "value", ["/models/x", "./model", "~/model", "x.gguf", "fastembed/BAAI/bge-m3", "openai"]
)
def test_a_workspace_file_may_not_bring_a_model(
    root: Path, env: dict[str, str], value: str
) -> None:
    own(root, f'embed.model = "{value}"')
    with pytest.raises(
        SettingsError, match=r"may not set embed\.model.*come from somebody else"
    ) as caught:
        load(root, env=env)
    assert "NOTEWELL_EMBED_MODEL" in caught.value.hint
    assert load(root.parent, env={**env, "NOTEWELL_EMBED_MODEL": value}).embed.model == value


@pytest.mark.parametrize("value", SAFE_MODELS)
def test_a_workspace_file_may_choose_among_the_packaged_models(
    root: Path, env: dict[str, str], value: str
) -> None:
    own(root, f'embed.model = "{value}"')
    assert load(root, env=env).embed.model == value


@pytest.mark.parametrize("key", FIELDS)
def test_every_setting_says_what_a_workspace_file_may_decide_of_it(key: str) -> None:
    private = bool(FIELDS[key].metadata["private"])
    classes = {"private": private, "lowered": key in LOWERED, "bounded": key in BOUNDED}
    classes |= {"partly": key in PARTLY, "freely": key in FREELY}
    assert sum(classes.values()) == 1, (
        f"{key} must be in one class of settings_checks.py, and is {classes}"
    )


def test_a_setting_that_nobody_put_into_a_class_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"may not set new\.one: a workspace file can come from somebody else"
    ):
        refuse_unsafe("new.one", 1, before=1, default=1, private=False, file="notewell.toml")


@pytest.mark.parametrize("key", sorted(FREELY))
def test_what_a_workspace_file_decides_freely_is_taken(
    root: Path, env: dict[str, str], key: str
) -> None:
    default = Settings().get(key)
    file = own(
        root, f"{key} = {json.dumps(list(default) if isinstance(default, tuple) else default)}"
    )
    assert origin(load(root, env=env), key) == (default, str(file))


@pytest.mark.parametrize("key", sorted(LOWERED))
def test_a_workspace_file_may_lower_an_amount_and_never_raise_it(
    root: Path, env: dict[str, str], key: str
) -> None:
    default = Settings().get(key)
    file = own(root, f"{key} = {default / 2 if isinstance(default, float) else default // 2}")
    assert origin(load(root, env=env), key) == (
        default // 2 if isinstance(default, int) else default / 2,
        str(file),
    )
    own(root, f"{key} = {default * 10}")
    with pytest.raises(
        SettingsError, match=rf"may only lower {key} from .*come from somebody else"
    ) as caught:
        load(root, env=env)
    assert env_name(key) in caught.value.hint
    # of which half may be repeated
    mine = user(env, f"{key} = {default * 20}\nchunk.tokens = 10_000")
    assert load(root, env=env).get(key) == default * 10, "you allow more"
    own(root, f"{key} = {default}")
    user(env, f"{key} = {type(default)(default / 4)}")
    assert origin(load(root, env=env), key) == (type(default)(default / 4), str(mine)), (
        "the lower one counts"
    )


@pytest.mark.parametrize("key", sorted(BOUNDED))
def test_a_workspace_file_may_raise_some_amounts_up_to_a_bound(
    root: Path, env: dict[str, str], key: str
) -> None:
    most = BOUNDED[key]
    own(root, f"{key} = {most}")
    assert load(root, env=env).get(key) == most
    own(root, f"{key} = {most + 1}")
    with pytest.raises(SettingsError, match=rf"may set {key} up to {most:,}, not to {most + 1:,}"):
        load(root, env=env)
    user(env, f"{key} = {most * 3}")
    assert load(root, env=env).get(key) == most + 1, "you allow more"


@pytest.mark.parametrize("key", sorted(LEAST))
def test_a_workspace_file_may_lower_some_amounts_down_to_a_bound(
    root: Path, env: dict[str, str], key: str
) -> None:
    least = LEAST[key]
    own(root, f"{key} = {least}")
    assert load(root, env=env).get(key) == least
    own(root, f"{key} = {least - 1}")
    with pytest.raises(
        SettingsError, match=rf"may set {key} down to {least:,}, not to {least - 1:,}"
    ):
        load(root, env=env)
    user(env, f"{key} = {least // 2}\nchunk.overlap = 0")
    assert load(root, env=env).get(key) == least - 1, "you allow less"


SAMPLE = Path(__file__).parents[1] / "src/notewell/surfaces/sample"
NOTES = [note.read_text(encoding="utf-8") for note in sorted(SAMPLE.rglob("*.md"))]
RUNNING = "\n".join(
    re.sub(r"(?m)^#+ ", "", note) for note in NOTES
)  # a note without headings, so that most is cut


@pytest.mark.parametrize("text", [*NOTES, RUNNING])
def test_no_workspace_file_makes_the_text_to_embed_grow_by_more_than_a_third(
    root: Path, env: dict[str, str], text: str
) -> None:
    def cut() -> list[Passage]:
        size = load(root, env=env).chunk
        return chunk(parse(text), ChunkSize(size.tokens, size.overlap))

    def length(passages: list[Passage]) -> int:
        return sum(len(passage.embed_text) for passage in passages)

    usual = cut()
    for tokens in (LEAST["chunk.tokens"], 300, 400, 600, BOUNDED["chunk.tokens"]):
        for overlap in (0, 20, 40, Settings().chunk.overlap):
            own(root, f"[chunk]\ntokens = {tokens}\noverlap = {overlap}")
            assert length(cut()) <= length(usual) * 4 / 3
            assert len(cut()) <= len(usual) * 2


def test_variables_win_over_a_workspace_file_which_is_compared_with_the_users_own(
    root: Path, env: dict[str, str]
) -> None:
    env["NOTEWELL_MAX_FILE_BYTES"] = "70_000_000"
    own(root, "max_file_bytes = 10_000")
    assert origin(load(root, env=env), "max_file_bytes") == (70_000_000, "NOTEWELL_MAX_FILE_BYTES")
    own(root, "max_file_bytes = 60_000_000")
    with pytest.raises(
        SettingsError, match="may only lower max_file_bytes from 50,000,000"
    ) as caught:
        load(root, env=env)
    assert "take it out of that file" in caught.value.hint


@pytest.mark.parametrize("number", ["nan", "inf", "1e999"])
def test_an_amount_that_is_no_number_is_refused(
    root: Path, env: dict[str, str], number: str
) -> None:
    for key in ("embed.budget_s", "search.scan_s"):
        own(root, f"{key} = {number}")
        with pytest.raises(SettingsError, match=f"{key}|not valid TOML"):
            load(root, env=env)


CHAINED = """
[embed]
model = "local"
chain = ["local", "http/my-model"]
url = "http://127.0.0.1:9/v1"
key = "hush"
"""


@pytest.mark.parametrize("layer", ["file", "variable", "flag"])
def test_a_workspace_file_does_not_bring_back_a_chain_that_sends_notes(
    root: Path, env: dict[str, str], layer: str
) -> None:
    flags: dict[str, Any] = {}
    user(env, CHAINED if layer == "file" else '[embed]\nmodel = "local"')
    if layer == "variable":
        env["NOTEWELL_EMBED_CHAIN"] = "local,openai"
    elif layer == "flag":
        flags = {"embed.chain": ("local", "openai")}
    own(root, 'embed.model = "auto"')
    with pytest.raises(
        SettingsError, match=r"may not set embed\.model to 'auto': your embed\.chain would send"
    ) as caught:
        load(root, env=env, flags=flags)
    assert "hush" not in str(caught.value)
    assert load(root, env=env, flags={**flags, "embed.model": "local"}).embed.names == ("local",), (
        "you decide after it"
    )
    own(root, 'embed.model = "auto"\nembed.chain = ["none"]')
    if layer == "file":
        assert load(root, env=env).embed.names == ("none",)


def test_a_workspace_file_may_name_auto_where_the_same_models_answer_anyway(
    root: Path, env: dict[str, str]
) -> None:
    own(root, 'embed.model = "auto"')
    assert load(root, env=env).embed.names == ("auto",)
    user(env, 'embed.chain = ["local", "openai"]')
    assert load(root, env=env).embed.names == ("local", "openai"), "as without the file"
    user(env, 'embed.model = "openai"\nembed.chain = ["openai", "local"]')
    assert load(root, env=env).embed.names == ("openai", "local")
    user(env, 'embed.model = "none"\nembed.chain = ["local", "bge-small-en-v1.5"]')
    assert load(root, env=env).embed.names == ("local", "bge-small-en-v1.5"), (
        "none of them sends anything"
    )


def test_a_workspace_file_may_take_trust_away_but_not_give_it(
    root: Path, env: dict[str, str]
) -> None:
    own(root, 'extra_origin = "untrusted"')
    assert load(root, env=env).extra_origin == "untrusted"
    user(env, 'extra_origin = "agent"')
    own(root, 'extra_origin = "owner"')
    with pytest.raises(SettingsError, match="may only set extra_origin to untrusted"):
        load(root, env=env)
    own(root, "")
    assert load(root, env=env).extra_origin == "agent"
    with pytest.raises(SettingsError, match="extra_origin is 'me'"):
        load(root, env=env | {"NOTEWELL_EXTRA_ORIGIN": "me"})


@pytest.mark.parametrize("key", ["model", "chain"])
@pytest.mark.parametrize(
    "name",
    [
        "openai",
        "ollama/nomic-embed-text",
        "/models/mine",
        "./model",
        "fastembed/x",
        "hashed@x",
        "HASHED",
        "",
    ],
)
def test_a_workspace_file_may_not_name_a_model_that_sends_or_reads_elsewhere(
    root: Path, env: dict[str, str], key: str, name: str
) -> None:
    own(
        root,
        f'[embed]\n{key} = "{name}"'
        if key == "model"
        else f'[embed]\n{key} = ["local", "x{name}"]',
    )
    with pytest.raises(
        SettingsError, match=rf"may not set embed\.{key} to .*come from somebody else"
    ) as caught:
        load(root, env=env)
    assert f"NOTEWELL_EMBED_{key.upper()}" in caught.value.hint


def test_a_workspace_file_may_name_models_that_come_with_the_installation(
    root: Path, env: dict[str, str]
) -> None:
    own(root, '[embed]\nmodel = "auto"\nchain = ["bge-small-en-v1.5", "hashed@512", "none"]')
    assert load(root, env=env).embed.chain == ("bge-small-en-v1.5", "hashed@512", "none")


def test_the_chain_of_a_variable_stands_between_commas(root: Path, env: dict[str, str]) -> None:
    env["NOTEWELL_EMBED_CHAIN"] = "local, openai,gemini"
    assert load(root, env=env).embed.chain == ("local", "openai", "gemini")


PRIVATE = {
    "embed.url": '"https://evil.example/v1"',
    "embed.headers": '["X: y"]',
    "embed.dim": "8",
    "embed.key": '"k"',
    "embed.timeout_s": "1.0",
    "embed.max_tokens_per_request": "9000",
    "embed.parallel": "9",
    "embed.batch": "true",
    "embed.threads": "1000000000",
    "embed.deadline_s": "0.001",
    "embed.trial_s": "0.001",
    "multimodal.paths": '["photos"]',
    "multimodal.max_bytes": "9",
}


@pytest.mark.parametrize("key", PRIVATE)
def test_a_workspace_file_may_not_change_what_a_remote_model_gets(
    root: Path, env: dict[str, str], key: str
) -> None:
    section, _, name = key.partition(".")
    own(root, f"[{section}]\n{name} = {PRIVATE[key]}")
    with pytest.raises(SettingsError, match=rf"may not set {key}") as caught:
        load(root, env=env)
    assert env_name(key) in caught.value.hint


@pytest.mark.parametrize(
    "model", ["openai", "gemini/gemini-embedding-2", "http/x", "Ollama", " voyage"]
)
def test_a_workspace_file_may_not_choose_a_model_that_sends_notes_elsewhere(
    root: Path, env: dict[str, str], model: str
) -> None:
    own(root, f'[embed]\nmodel = "{model}"')
    with pytest.raises(
        SettingsError, match=r"may not set embed\.model to .* would send your notes elsewhere"
    ) as caught:
        load(root, env=env)
    assert "NOTEWELL_EMBED_MODEL" in caught.value.hint
    (root / "notewell.toml").unlink()
    user(env, f'[embed]\nmodel = "{model}"')
    assert load(root, env=env).embed.model == model


@pytest.mark.parametrize("model", ["none", "hashed", "bge-small-en-v1.5"])
def test_a_workspace_file_may_choose_a_local_model(
    root: Path, env: dict[str, str], model: str
) -> None:
    own(root, f'[embed]\nmodel = "{model}"')
    assert load(root, env=env).embed.model == model


def test_secrets_are_read_and_never_shown(root: Path, env: dict[str, str]) -> None:
    user(env, '[embed]\nkey = "hush-hush"\nheaders = ["X-Key: hush-hush", "X-Other:hush-hush"]')
    settings = load(root, env=env)
    assert settings.embed.key == "hush-hush"
    assert settings.embed.headers == ("X-Key: hush-hush", "X-Other:hush-hush")
    shown = {key: value for key, value, *_ in settings.items()}
    assert shown["embed.key"] == "(hidden)"
    assert shown["embed.headers"] == ("X-Key: (hidden)", "X-Other: (hidden)")
    assert "hush" not in repr(settings)
    assert {key: value for key, value, *_ in Settings().items()}["embed.key"] == ""


@pytest.mark.parametrize(
    "text", ["key = 12345678", "headers = [12345678]", 'headers = ["12345678"]']
)
def test_a_secret_of_the_wrong_kind_is_refused_without_being_shown(
    root: Path, env: dict[str, str], text: str
) -> None:
    user(env, f"[embed]\n{text}")
    with pytest.raises(SettingsError) as caught:
        load(root, env=env)
    assert "12345678" not in str(caught.value) + caught.value.hint


def test_headers_of_a_variable_stand_between_semicolons(root: Path, env: dict[str, str]) -> None:
    env["NOTEWELL_EMBED_HEADERS"] = "Accept: a, b; X-Team: notes"
    assert load(root, env=env).embed.headers == ("Accept: a, b", "X-Team: notes")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"embed.dim": -1}, "at least 1, or 0"),
        ({"embed.timeout_s": 0}, "above 0"),
        ({"embed.timeout_s": float("nan")}, "above 0"),
        ({"embed.parallel": 0}, "from 1 to 64"),
        ({"embed.parallel": 65}, "from 1 to 64"),
        ({"embed.max_tokens_per_request": 10}, "at least 100"),
    ],
)
def test_values_for_remote_models_that_make_no_sense_are_refused(
    root: Path, env: dict[str, str], flags: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(root, env=env, flags=flags)
    assert words in caught.value.hint


def chained(*chain: str, **more: Any) -> EmbedSettings:
    return EmbedSettings(chain=chain, **more)


def test_address_and_key_belong_to_the_provider_of_the_model_or_to_the_only_one_of_a_chain() -> (
    None
):
    assert (
        owner_of_address(EmbedSettings(model="OpenAI/text-embedding-3-large", chain=("gemini",)))
        == "openai"
    )
    assert (
        owner_of_address(
            chained("local", "openai", "openai/text-embedding-3-large", url="http://x/v1")
        )
        == "openai"
    )
    assert (
        owner_of_address(chained("local", "openai", "http/m", url="http://x/v1", key="k")) == "http"
    )
    assert owner_of_address(chained("openai", "gemini")) == ""
    assert owner_of_address(EmbedSettings(url="http://x/v1")) == ""
    assert (
        owner_of_address(EmbedSettings(model="hashed", chain=("openai",), url="http://x/v1")) == ""
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("url", "http://x/v1"), ("key", "SECRET"), ("headers", "X: SECRET"), ("dim", "64")],
)
def test_an_address_in_a_chain_of_two_providers_is_refused_and_no_secret_shown(
    tmp_path: Path, name: str, value: str
) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path), "NOTEWELL_EMBED_CHAIN": "local,openai,gemini"}
    load(tmp_path, env=env)
    env |= {f"NOTEWELL_EMBED_{name.upper()}": value}
    with pytest.raises(
        SettingsError, match=rf"embed\.{name} can be for one provider only.* openai and gemini"
    ) as told:
        load(tmp_path, env=env)
    assert "SECRET" not in str(told.value) + told.value.hint


def test_another_provider_by_flag_does_not_get_the_address_and_key_of_the_one_before(
    tmp_path: Path,
) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    file = tmp_path / "config/notewell/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        '[embed]\nmodel = "http/m"\nurl = "http://x/v1"\nkey = "k"\nheaders = ["A: b"]\ndim = 8\n'
        "budget_s = 1\n"
    )
    own = load(tmp_path, env=env).embed
    assert (own.url, own.key, own.headers, own.dim) == ("http://x/v1", "k", ("A: b",), 8)
    other = load(tmp_path, env=env, flags={"embed.model": "openai"})
    assert (other.embed.url, other.embed.key, other.embed.headers, other.embed.dim) == (
        "",
        "",
        (),
        0,
    )
    assert other.embed.budget_s == 1
    assert "embed.url" not in other.origins
    same = load(tmp_path, env=env, flags={"embed.model": "http/other"}).embed
    assert (same.url, same.key) == ("http://x/v1", "k")
    both = load(
        tmp_path, env={**env, "NOTEWELL_EMBED_MODEL": "openai", "NOTEWELL_EMBED_URL": "http://y/v1"}
    ).embed
    assert (both.url, both.key) == ("http://y/v1", "")


URL = "postgresql://ann:hush@db.example:5433/notes?sslpassword=hush2"


def test_the_address_of_a_database_is_yours_alone_and_never_shown_with_its_password(
    root: Path, env: dict[str, str]
) -> None:
    for line in (f'url = "{URL}"', 'workspace = "other"', 'agent = "bob"', "timeout_s = 1.0"):
        own(root, f"[index]\n{line}")
        with pytest.raises(SettingsError, match=f"may not set index.{line.split()[0]}") as caught:
            load(root, env=env)
        assert "hush" not in str(caught.value) + caught.value.hint
    own(root, "")
    user(env, f'[index]\nurl = "{URL}"')
    settings = load(root, env=env)
    assert settings.index.url == URL
    assert origin(settings, "index.url")[0] == "postgresql://ann@db.example:5433/notes"
    assert "hush" not in repr(settings)


def test_the_index_that_was_named_last_is_the_one(
    root: Path, env: dict[str, str], tmp_path: Path
) -> None:
    user(env, f'[index]\nurl = "{URL}"')
    by_env = load(root, env={**env, "NOTEWELL_INDEX_PATH": "/elsewhere/index.sqlite"})
    assert (by_env.index.path, by_env.index.url) == ("/elsewhere/index.sqlite", "")
    by_flag = load(root, env={**env, "NOTEWELL_INDEX_PATH": "/elsewhere"}, flags=index_flags(URL))
    assert (by_flag.index.path, by_flag.index.url) == ("", URL)
    user(env, "")
    assert load(root, env={**env, "NOTEWELL_INDEX_URL": URL}).index.url == URL
    relative = load(
        root, env={**env, "NOTEWELL_INDEX_URL": URL}, flags=index_flags("some.sqlite")
    ).index
    assert (Path(relative.path), relative.url) == (Path("some.sqlite").absolute(), "")


def test_a_database_of_another_kind_is_refused_without_its_password(
    root: Path, env: dict[str, str]
) -> None:
    for flags in ({"index.url": "mysql://ann:hush@db/notes"}, {"index.timeout_s": 0}):
        with pytest.raises(SettingsError, match=r"index\.") as caught:
            load(root, env=env, flags=flags)
        assert "hush" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (URL, "postgresql://ann@db.example:5433/notes"),
        ("postgres://db/notes", "postgres://db/notes"),
        ("postgresql://:hush@[::1]:5432/notes#hush", "postgresql://@[::1]:5432/notes"),
        ("postgresql://ann:p@ss@one,two/notes", "postgresql://ann@one,two/notes"),
    ],
)
def test_an_address_is_shown_without_what_opens_it(url: str, shown: str) -> None:
    assert without_password(url) == shown
