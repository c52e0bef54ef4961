"""Secrets go, everything else stays, lines keep their numbers, and no text takes long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.errors import SettingsError
from notewell.text.markdown import split_lines
from notewell.text.redact import Redactor
from tests.growth import Linear
from tests.text.secret_samples import (
    BESIDE,
    COLLECTED,
    CONTEXTS,
    FURTHER,
    KEY_LINES,
    ORDINARY,
    REPORTED,
    made,
)

REDACT = Redactor()
_WAYS = list(CONTEXTS.values())


def placed(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each token in one of the contexts, in turn."""
    return [(kind, _WAYS[n % len(_WAYS)].format(token)) for n, (kind, token) in enumerate(tokens)]


REPORT = placed(REPORTED) + BESIDE
MORE = placed(COLLECTED) + FURTHER
PRIVATE = [
    (
        "private-key",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\r\n{KEY_LINES}\r\n-----END OPENSSH PRIVATE KEY-----",
    ),
    (
        "private-key",
        (
            f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{KEY_LINES}\n-----END PGP PRIVATE KEY "
            "BLOCK-----"
        ),
    ),
    (
        "private-key",
        '"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n-----END PRIVATE KEY-----\\n"',
    ),
    ("private-key", f"-----BEGIN EC PRIVATE KEY-----\n{KEY_LINES}"),
    ("private", "<Private>\nmy salary\nand more\n</PRIVATE>"),
]
SECRETS = [text for _, text in (*REPORT, *MORE, *PRIVATE)]

HARMLESS = [
    # hashes, ids and long numbers
    "fixed in 3f2504e04f8941d39a0c0305e82c3301deadbeef",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "see 1a410ef and 0de24ae",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "md5 d41d8cd98f00b204e9800998ecf8427e",
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393",
    (
        "integrity "
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
    ),
    "session 0b8f7f1e-2c4b-4f0e-9d5c-5b0d0d1b2c3d was closed",
    "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV is a ULID",
    "order 12345678901234567890123456789012",
    "π is 3.14159265358979323846264338327950288",
    "call +49 30 901820 or 0800 1234567890",
    "IBAN DE89 3704 0044 0532 0130 00",
    "ISBN 978-3-16-148410-0",
    "chat id 8331738812 and topic 537",
    "at 1742378512123 ms since the epoch",
    "trace 4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7",
    "docker image nginx@sha256:2834dc507516af02784808c5f48b7cbe38b8ed5d0f4837f16e78d00deb7e7767",
    # things in base64
    "![](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1kW9c8oQ2j5m7nq0mX4k3rX6x0YzQ0Wb4l5nq0mX4k me@laptop",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ1\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "a file that begins with -----BEGIN RSA PRIVATE KEY----- must not be committed",
    "the header eyJhbGciOiJIUzI1NiJ9 alone says HS256",
    # prose
    "he is the bearer of bad news",
    "Bearer authentication is explained in RFC 6750",
    "Authorization: basic authentication is off",
    "the password reset flow sends a mail",
    "Password: required",
    "password: string, at least 12 characters",
    "password is hashed with argon2id",
    "the token bucket refills 10 times a second",
    "token: see docs",
    "Token: bucket algorithm",
    "max_tokens: 4096",
    "tokens=200000",
    "the secret: keep it simple",
    "secret: optional",
    "the key: caching, not compression",
    "credentials: none",
    "our api key: rotated monthly",
    "secretary: Mira Okonkwo2",
    "a key-value store, key-0 to key-99",
    "sk-learn and sk-folding-cube-animation-wrapper",
    "npm_config_registry and npm_lifecycle_event",
    "hf_hub_download(repo_id) is from huggingface_hub",
    "the prefix AKIA marks a key, ghp_ a token, xoxb- a bot, sk_live_ a charge",
    "glpat- tokens begin so",
    "pypi-simple and pypi-server are packages",
    "the Pat Smith talk: patience.pays",
    "the risk-adjusted task-runner-of-the-year-2026",
    # code
    "password = os.environ['DB_PASSWORD']",
    "password: ${DB_PASSWORD_1}",
    "export TOKEN=$GITHUB_TOKEN",
    "password: ********",
    "api_key: <your-key-1>",
    "api_key = YOUR_API_KEY_1",
    'token = getToken1("x")',
    "secret = config.s3.secret2",
    "token: Token2Type[]",
    "def login(password: SecretStr, token: AccessToken) -> None:",
    "PWD=/home/mira/project2",
    "password_file: /run/secrets/db1",
    "token_url: https://example.org/oauth2/token",
    'curl -u "$USER:$PASS" https://example.org',
    "Authorization: Bearer $TOKEN_1",
    "Authorization: Bearer <token-1>",
    "--header 'Authorization: Bearer ${TOKEN}'",
    '"password": "string?",',
    "private_key: Ed25519PrivateKey | Ed448PrivateKey",
    '<assemblyIdentity publicKeyToken="1fc8b3b9a1e18e3b">',
    # addresses
    "https://username:password@host.com:80/path?query#fragment",
    "`https://user:pass@host:port/path`",
    "https://example.org:8443/path@2x.png",
    "git@github.com:octo/repo.git",
    "ssh://git@github.com:22/octo/repo.git",
    "https://mira@example.org/x",
    "mailto:mira@example.org",
    "http://[2001:db8::1]:8080/",
    "postgres://user:$PASSWORD@db/shop",
    "docker.io/library/postgres:16@sha256",
    "discord.gg/abcdef",
    "the tag `<private>` hides what follows it",
]


@pytest.mark.parametrize(("kind", "text"), REPORT + MORE + PRIVATE)
def test_a_secret_goes_and_what_stands_around_it_stays(kind: str, text: str) -> None:
    text = f"first line\n\n{text}\n\nafter it all"
    found = REDACT(text)
    assert found.found == {kind: 1}, found.text
    assert f"[redacted:{kind}]" in found.text
    assert found.text.startswith("first line\n\n")
    assert found.text.endswith("\n\nafter it all")
    assert len(split_lines(found.text)) == len(split_lines(text))


@pytest.mark.parametrize("way", CONTEXTS)
def test_every_token_is_found_wherever_it_stands(way: str) -> None:
    for kind, token in REPORTED + COLLECTED:
        found = REDACT(CONTEXTS[way].format(token))
        assert found.found == {kind: 1}, token
        assert found.text == CONTEXTS[way].format(f"[redacted:{kind}]")


@pytest.mark.parametrize("forms", [REPORT, MORE], ids=["reported", "collected"])
def test_at_least_95_of_100_forms_are_found(forms: list[tuple[str, str]]) -> None:
    assert len(REPORT) == 152
    assert len(MORE) >= 100
    assert sum(bool(REDACT(text).found) for _, text in forms) >= 0.95 * len(forms)


def test_at_most_one_ordinary_text_in_100_is_touched() -> None:
    texts = ORDINARY + HARMLESS
    assert len(texts) >= 200
    assert sum(bool(REDACT(text).found) for text in texts) <= len(texts) // 100


@pytest.mark.parametrize("text", ORDINARY + HARMLESS)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert REDACT(text) == type(REDACT(text))(text, {})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("https://u:p" + "@ssw0rd1@host/x", "https://u:[redacted:url-password]@host/x"),
        (
            "| a | password |\n|--|--|\n| b | hunt" + "er2! |\n| c | none |",
            "| a | password |\n|--|--|\n| b | [redacted:password] |\n| c | none |",
        ),
        ("password=Xk29" + ",fjq!z", "password=[redacted:password]"),
        (
            "a\u200bb\nkey ghp_" + "\u200b".join("a1B" * 12) + "\nc\u200bd",
            "a\u200bb\nkey [redacted:github-token]\nc\u200bd",
        ),
        ("token: " + made(900), "token: [redacted:secret]"),
    ],
)
def test_no_part_of_a_secret_is_left(text: str, left: str) -> None:
    assert REDACT(text).text == left


def test_only_the_value_goes_and_the_name_stays_to_be_found() -> None:
    text = (
        'DB_PASSWORD="hunter2!" for postgres://shop:pa55@db/x and Authorization: Bearer '
        "abc123def456ghi7."
    )
    assert REDACT(text).text == (
        'DB_PASSWORD="[redacted:password]" for postgres://shop:[redacted:url-password]@db/x'
        " and Authorization: Bearer [redacted:authorization]"
    )


def test_private_blocks_are_counted_each_and_lines_stay() -> None:
    text = "a\n<private>b\nc</private>\nd <private>e</private> f\n<private>\ng\nh"
    found = REDACT(text)
    assert (
        found.text
        == "a\n[redacted:private]\n\nd [redacted:private] f\n[redacted:private-unclosed]\n\n"
    )
    assert found.found == {"private": 2, "private-unclosed": 1}


def test_a_key_without_its_end_takes_its_lines_and_no_more() -> None:
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINES}\n\nThe rest of the note.\n"
    assert REDACT(text).text.endswith("\n\nThe rest of the note.\n")


def test_patterns_of_the_user_count_as_patterns() -> None:
    found = Redactor((r"ACME-\d{6}", r"(?i)project\s+nightfall"))(
        "ACME-123456 is Project\nNightfall"
    )
    assert found.text == "[redacted:pattern] is [redacted:pattern]\n"
    assert found.found == {"pattern": 2}


def test_a_pattern_never_cuts_into_a_mark() -> None:
    redact = Redactor(("redacted|n+",))
    once = redact("password: hunter22 and nnn")
    assert once.text == "password: [redacted:password] a[redacted:pattern]d [redacted:pattern]"
    assert redact(once.text).text == once.text


@pytest.mark.parametrize(
    ("pattern", "said"), [("(", "not a regular expression"), ("a*", "matches the empty text")]
)
def test_a_bad_pattern_is_an_error_with_a_hint(pattern: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        Redactor((pattern,))
    assert caught.value.hint


def test_the_signature_follows_the_patterns() -> None:
    assert Redactor().signature == Redactor(()).signature
    assert len({Redactor().signature, Redactor(("a",)).signature, Redactor(("b",)).signature}) == 3


_pieces = st.sampled_from(
    [
        *SECRETS,
        *HARMLESS,
        *ORDINARY,
        "\n",
        "\r\n",
        "\r",
        " ",
        "=",
        ":",
        "password",
        "token: ",
        "Bearer ",
        "://",
        "@",
        "`",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "<private>",
        "</private>",
        "[redacted:jwt]",
        "sk-",
    ]
)
_texts = st.lists(_pieces | st.text(max_size=12), max_size=12).map("".join) | st.text()


@settings(max_examples=300, deadline=None)
@given(_texts)
def test_twice_is_once_and_the_lines_are_as_many(text: str) -> None:
    once = REDACT(text)
    assert REDACT(once.text).text == once.text
    assert len(split_lines(once.text)) == len(split_lines(text))
    assert bool(once.found) == (once.text != text)


HOSTILE = [
    "a",
    "A7k",
    "password:",
    "password ",
    "token=a",
    "://",
    "://a:",
    "://a:b",
    "Bearer ",
    "bearer a",
    "sk-",
    "eyJa.",
    "eyJaaaaaaaaaaaa.eyJ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nabcdefghijklmnop1234\n",
    "<private>",
    "</private>",
    "<private>\n## a\n",
    "## a\n",
    "< \u200b",
    "<private>x</private>",
    "`<private>`",
    "<private",
    "AKIA",
    "M" + "a1B" * 8 + ".",
    "1:AA",
    "12345678:AA",
    "SG.a",
    "xoxb-1",
    "curl ",
    "curl -u a",
    "authorization: ",
    "secret='",
    "a.",
    "api_key:a1.",
    "[redacted:jwt]",
    "key ",
    "\n",
    "abcdefghijklmnop\n",
    "password: ",
    "password:\n",
    "pass: a",
    "KEY=",
    "A_KEY=a1",
    "| password ",
    "|password|\n|--|\n",
    "password|",
    "<password>a",
    "cookie: a=",
    "cookie:",
    "curl -u",
    "mysql -p ",
    "sshpass -p",
    "login a password ",
    "wifi:",
    "phrase: abc ",
    "private-lines: 3\nabcd\n",
    "sig=",
    "?sig=a",
    "password is ",
    "a\u200b",
    "pass\u200bword: a1",
    "密码：a1",
    "-----BEGIN PRIVATE KEY-----\n> abcdefghijklmnop\n",
    "-----BEGIN PRIVATE KEY-----\nA-b: c\n",
    "password=a,b&",
    "password: 'a",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa+ASt",
    "otpauth://a?b&",
    "eyJaaaaaaaaaaaaaaa..",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_megabyte_takes_a_time_that_grows_with_it_alone(
    piece: str, linear: Linear
) -> None:
    marks = (
        "password token bearer curl authorization sk- eyj ghp_ xoxb- private key :aa dp. pat "
        "do -us :// -p login mysql"
    )
    end = marks + "-----END PRIVATE KEY-----"
    linear(lambda text: REDACT(text + end), piece * (1_000_000 // len(piece)))
