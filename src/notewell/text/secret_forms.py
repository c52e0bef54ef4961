"""The forms of secrets that issuers publish: one line for each form. Pure data.

`TOKENS` start with something that only this issuer writes, then come so many characters of one
alphabet. `SHAPES` are tokens of several parts. `PLACES` are values that only their surroundings
give away: a header, a URL, a command.
"""

from __future__ import annotations

import re
from collections.abc import Callable

ALNUM, HEX, UPPER = "A-Za-z0-9", "0-9a-f", "A-Z0-9"
WORD, DASH, BASE64 = "A-Za-z0-9_", "A-Za-z0-9_-", "A-Za-z0-9+/="
_URL64 = "A-Za-z0-9_=-"
_PLACEHOLDER = re.compile(
    r"[$%*/.~<{#&]|\[redacted:|https?:|your|example|placeholder|changeme|redacted|xxx|\.\.\.|…|_{3}|!(?:vault|secret|env|ref|sub)\b|\^[a-z]+\^",
    re.IGNORECASE,
)
_SPOKEN_OF = (
    "pass",
    "passwd",
    "password",
    "pw",
    "pwd",
    "secret",
    "token",
    "user",
    "username",
    "mypassword",
)
_WORDY_PART = re.compile(
    r"(?:[a-z]{2,}|[A-Z][a-z]+|[A-Z]{2,})\d*|[a-z]{1,3}\d{1,3}|\d{0,4}|[A-Za-z]"
)
_PARTS = re.compile(r"[-_.:/=+~]")

Test = Callable[[str], bool]


def has_digit(value: str) -> bool:
    """Whether there is a digit in it."""
    return any(c.isdigit() for c in value)


def mixed(value: str) -> bool:
    """Whether a value has digits, capitals and small letters, as random values do and names do
    not.
    """
    return has_digit(value) and any(c.isupper() for c in value) and any(c.islower() for c in value)


def varied(value: str) -> bool:
    """Whether a value is not just a few repeated characters, such as `xxxxxxxx` or `00000000` in an
    example.
    """
    return len(set(value)) > 5


def random(value: str) -> bool:
    """Whether a value has a digit and is not a name made of words and numbers, such as
    `v2-migration` or `user_id2`.
    """
    return has_digit(value) and varied(value) and not wordy(value)


def wordy(value: str) -> bool:
    """Whether a value is made of words, each perhaps with a number after it."""
    return all(_WORDY_PART.fullmatch(part) for part in _PARTS.split(value))


def not_stand_in(value: str) -> bool:
    """Whether a value is not one that documents put in the place of a secret."""
    return _PLACEHOLDER.match(value) is None and value.lower() not in _SPOKEN_OF


def _credential(value: str) -> bool:
    """Whether the text after `Authorization: Basic` is a credential, or just the next word of a
    sentence.
    """
    return not_stand_in(value) and (
        has_digit(value) or value.endswith("=") or value[1:].lower() != value[1:]
    )


def _in_url(value: str) -> bool:
    return not_stand_in(value) and len(value) > 1


def _argument(value: str) -> bool:
    """Whether a word after `-p` is a password, and neither a port, nor an option, nor a
    stand-in.
    """
    return (
        not_stand_in(value)
        and not value.isdigit()
        and (has_digit(value) or re.search(r"\W", value) is not None)
    )


def _netrc(value: str) -> bool:
    """Whether what follows `login name password` is a password: the words may also be those of a
    sentence.
    """
    return not_stand_in(value) and (has_digit(value) or re.search(r"[^\w.,:;]", value) is not None)


def _cookies(value: str) -> bool:
    return any(len(v) >= 12 and has_digit(v) for v in re.split(r"[=;\s]+", value))


# kind, beginnings, the characters that follow, least and most of them (where equal, no more may
# follow), a test
TOKENS: tuple[tuple[str, str, str, int, int, Test | None], ...] = (
    # clouds and hosting
    ("aws-key", "AKIA ASIA ABIA ACCA", "A-Z2-7", 16, 16, varied),
    ("aws-key", "ABSKQmVkcm9ja0FQSUtleS", BASE64, 60, 300, mixed),
    ("alibaba-key", "LTAI", ALNUM, 16, 24, mixed),
    ("tencent-key", "AKID", ALNUM, 32, 32, mixed),
    ("google-key", "AIza", DASH, 35, 35, varied),
    ("google-token", "ya29. GOCSPX-", DASH, 20, 512, varied),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", HEX, 64, 64, None),
    ("heroku-key", "HRKU-", DASH, 36, 80, mixed),
    ("fly-token", "fo1_ fm1a_ fm1r_ fm2_", "A-Za-z0-9+/=_-", 40, 1500, mixed),
    ("render-key", "rnd_", ALNUM, 28, 40, mixed),
    ("netlify-token", "nfp_ nfc_ nfo_ nfu_", ALNUM, 36, 60, mixed),
    ("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", ALNUM, 24, 80, mixed),
    ("railway-token", "rlwy_", DASH, 30, 80, mixed),
    ("scalingo-token", "tk-us-", DASH, 48, 48, mixed),
    ("supabase-token", "sbp_", HEX, 40, 40, None),
    ("supabase-token", "sb_secret_", DASH, 24, 80, mixed),
    ("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "A-Za-z0-9_=.-", 32, 64, None),
    ("neon-key", "napi_", ALNUM, 40, 80, varied),
    ("databricks-token", "dapi dkea dose", HEX, 32, 32, random),
    ("clickhouse-key", "4b1d", ALNUM, 38, 38, mixed),
    ("confluent-key", "cflt", BASE64, 56, 64, mixed),
    ("yandex-token", "AQVN YCAJ y0_Ag", DASH, 34, 80, mixed),
    ("tailscale-key", "tskey-", DASH, 20, 120, mixed),
    (
        "doppler-token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        "A-Za-z0-9._-",
        32,
        80,
        None,
    ),
    ("vault-token", "hvs. hvb. hvr.", DASH, 24, 300, None),
    ("pulumi-token", "pul-", HEX, 40, 40, None),
    ("infracost-key", "ico-", ALNUM, 32, 32, mixed),
    ("onepassword-token", "ops_eyJ", BASE64, 100, 2000, mixed),
    ("age-key", "AGE-SECRET-KEY-1", UPPER, 58, 58, None),
    ("prefect-token", "pnu_ pnb_", ALNUM, 36, 36, varied),
    # code and packages
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", ALNUM, 36, 255, varied),
    ("github-token", "github_pat_", WORD, 22, 255, varied),
    (
        "gitlab-token",
        "glpat- gldt- glrt- glptt- glcbt- glft- glimt- glagent- glsoat- glffct- glwt- gloas-",
        "A-Za-z0-9_.-",
        20,
        120,
        varied,
    ),
    ("gitlab-token", "GR1348941", DASH, 20, 40, mixed),
    ("bitbucket-token", "ATBB ATCTT3", _URL64, 28, 300, mixed),
    ("atlassian-token", "ATATT3", _URL64, 60, 300, None),
    ("trello-token", "ATTA", ALNUM, 60, 80, varied),
    ("npm-token", "npm_", ALNUM, 36, 36, mixed),
    ("pypi-token", "pypi-", DASH, 50, 512, mixed),
    ("rubygems-key", "rubygems_", HEX, 48, 48, None),
    ("crates-token", "cio", ALNUM, 32, 32, mixed),
    ("clojars-token", "CLOJARS_", HEX, 60, 60, None),
    ("nuget-key", "oy2", "a-z0-9", 43, 43, random),
    ("docker-token", "dckr_pat_ dckr_oat_", DASH, 20, 60, mixed),
    ("artifactory-key", "AKCp", ALNUM, 50, 90, mixed),
    ("artifactory-key", "cmVmdGtuO", ALNUM, 50, 80, mixed),
    ("circleci-token", "CCIPAT_ CCIPRJ_", WORD, 40, 90, varied),
    ("buildkite-token", "bkua_ bkct_ bkpt_ bkaj_", HEX, 40, 40, None),
    ("sonarqube-token", "squ_ sqp_ sqa_", HEX, 40, 40, None),
    ("sourcegraph-token", "sgp_ slk_ sgd_", "A-Fa-f0-9_", 40, 64, random),
    ("octopus-key", "API-", UPPER, 26, 36, random),
    ("postman-key", "PMAK-", "0-9a-f-", 59, 59, None),
    ("figma-token", "figd_ figu_ figo_", DASH, 30, 80, None),
    ("sentry-token", "sntrys_ sntryu_ sntryi_", "A-Za-z0-9_+/=", 40, 400, None),
    ("snyk-token", "snyk_uat. snyk_sat.", "A-Za-z0-9._-", 30, 200, random),
    ("linear-key", "lin_api_ lin_oauth_", ALNUM, 32, 64, None),
    ("readme-key", "rdme_", "a-z0-9", 70, 70, None),
    ("launchdarkly-key", "api- sdk-", "0-9a-f-", 36, 36, lambda v: v.count("-") == 5 and random(v)),
    # models
    ("anthropic-key", "sk-ant-", DASH, 20, 255, mixed),
    ("openrouter-key", "sk-or-v1-", HEX, 64, 64, None),
    ("openai-key", "sk-", HEX, 32, 64, lambda v: has_digit(v[3:]) and varied(v)),
    (
        "openai-key",
        "sk-",
        DASH,
        20,
        255,
        lambda v: not v.startswith("sk-ant-") and (mixed(v) or v.startswith("sk-lf-")),
    ),
    (
        "huggingface-token",
        "hf_ api_org_",
        ALNUM,
        30,
        60,
        lambda v: mixed(v) or (v[3:].isalpha() and v.lower() != v),
    ),
    ("groq-key", "gsk_", ALNUM, 40, 80, None),
    ("xai-key", "xai-", ALNUM, 40, 100, mixed),
    ("perplexity-key", "pplx-", ALNUM, 40, 80, None),
    ("replicate-token", "r8_", ALNUM, 37, 37, None),
    ("tavily-key", "tvly-", DASH, 20, 60, mixed),
    ("cerebras-key", "csk-", "a-z0-9", 40, 60, random),
    ("nvidia-key", "nvapi-", DASH, 60, 80, mixed),
    ("langsmith-key", "lsv2_pt_ lsv2_sk_ ls__", "0-9a-f_", 32, 60, random),
    ("pinecone-key", "pcsk_", WORD, 40, 90, mixed),
    ("voyage-key", "pa-", DASH, 40, 50, mixed),
    ("jina-key", "jina_", DASH, 50, 80, mixed),
    ("elevenlabs-key", "sk_", HEX, 48, 48, None),
    ("fireworks-key", "fw_", ALNUM, 20, 40, mixed),
    ("together-key", "tgp_v1_", DASH, 40, 60, mixed),
    ("firecrawl-key", "fc-", HEX, 32, 32, None),
    ("llamacloud-key", "llx-", ALNUM, 40, 60, mixed),
    ("brave-key", "BSA", DASH, 24, 30, mixed),
    ("wandb-key", "wandb_v1_", WORD, 40, 100, mixed),
    # messages and mail
    (
        "slack-token",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp-",
        "A-Za-z0-9%+/=-",
        10,
        512,
        has_digit,
    ),
    ("slack-token", "xapp-", "A-Za-z0-9-", 22, 250, has_digit),
    ("resend-key", "re_", WORD, 30, 40, mixed),
    ("brevo-key", "xkeysib- xsmtpsib-", "A-Za-z0-9-", 60, 100, None),
    ("mailgun-key", "key-", HEX, 32, 32, None),
    ("mailersend-key", "mlsn.", HEX, 60, 70, None),
    ("twilio-key", "SK", HEX, 32, 32, None),
    ("twitter-token", "AAAAAAAAAAAAAAAAAAAAA", "A-Za-z0-9%", 60, 120, mixed),
    ("facebook-token", "EAA", ALNUM, 80, 400, mixed),
    ("instagram-token", "IGQV IGAA", DASH, 80, 300, mixed),
    ("vk-token", "vk1.a.", DASH, 60, 300, mixed),
    # money and shops
    (
        "stripe-key",
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_",
        BASE64,
        16,
        255,
        varied,
    ),
    ("square-token", "sq0atp- sq0csp-", DASH, 22, 60, None),
    ("square-token", "EAAA", DASH, 56, 64, mixed),
    (
        "plaid-token",
        "access-sandbox- access-development- access-production-",
        "0-9a-f-",
        36,
        36,
        has_digit,
    ),
    ("braintree-token", "access_token$production$ access_token$sandbox$", "a-z0-9$", 45, 60, None),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_ shptka_", "0-9a-fA-F", 32, 32, None),
    ("razorpay-key", "rzp_live_ rzp_test_", ALNUM, 14, 20, mixed),
    ("mollie-key", "live_ test_", ALNUM, 30, 36, mixed),
    ("lob-key", "live_ test_", HEX, 35, 35, None),
    ("duffel-token", "duffel_live_ duffel_test_", _URL64, 43, 43, mixed),
    ("easypost-key", "EZAK EZTK", ALNUM, 54, 54, mixed),
    ("shippo-token", "shippo_live_ shippo_test_", "0-9a-fA-F", 40, 40, None),
    ("flutterwave-key", "FLWSECK_TEST- FLWSECK-", "0-9a-zA-Z-", 12, 60, has_digit),
    ("coinbase-key", "cbk_", DASH, 30, 80, mixed),
    # data and everything else
    ("newrelic-key", "NRAK- NRII- NRJS- NRRA- NRIQ-", "A-Za-z0-9_-", 19, 42, has_digit),
    ("grafana-token", "glsa_ glc_", "A-Za-z0-9_+/=", 32, 400, None),
    ("honeycomb-key", "hcaik_ hcbik_ hcamk_ hcxik_", "a-z0-9", 40, 70, varied),
    ("axiom-token", "xaat- xapt-", "0-9a-f-", 36, 36, None),
    ("posthog-key", "phx_ phs_", ALNUM, 40, 60, mixed),
    ("dnkey", "dnkey-", _URL64, 70, 90, None),
    ("dropbox-token", "sl. sl.u. sl.B.", DASH, 60, 1500, mixed),
    ("airtable-token", "pat", "A-Za-z0-9.", 79, 79, lambda v: v[17] == "."),
    ("notion-token", "ntn_ secret_", ALNUM, 40, 60, mixed),
    ("hubspot-token", "pat-na1- pat-na2- pat-eu1- pat-ap1-", "0-9a-f-", 36, 36, None),
    ("contentful-token", "CFPAT-", DASH, 40, 60, mixed),
    ("clickup-token", "pk_", UPPER + "_", 30, 60, lambda v: v[3:].partition("_")[0].isdigit()),
    ("typeform-token", "tfp_", "A-Za-z0-9_.=-", 40, 70, mixed),
    ("frameio-token", "fio-u-", _URL64, 60, 70, mixed),
    ("mapbox-token", "sk.eyJ", "A-Za-z0-9_.-", 60, 200, mixed),
    ("adobe-secret", "p8e- p8-", DASH, 32, 40, mixed),
    ("intra-secret", "s-s4t2ud- s-s4t2af-", HEX, 64, 64, None),
    ("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", ALNUM, 16, 16, mixed),
    ("openshift-token", "sha256~", DASH, 43, 43, mixed),
    ("firebase-key", "AAAA", "A-Za-z0-9_:-", 140, 180, lambda v: ":APA91b" in v),
    ("ngrok-token", "ngrok_", DASH, 30, 80, mixed),
    ("zapier-token", "zpka_", WORD, 30, 80, varied),
    ("nostr-key", "nsec1", "a-z0-9", 58, 58, None),
    ("bitcoin-key", "xprv zprv yprv", ALNUM, 107, 108, mixed),
)
# An id of digits in base64
_DISCORD = " ".join(a + b + c for a in "MNO" for b in "DTjz" for c in "AEIMQUYcgk")

# kind, beginnings of a part, of which one must be present (with `*`, of anything in a long run),
# the expression, a test
SHAPES: tuple[tuple[str, str, str, Test | None], ...] = (
    ("telegram-token", "*:AA", r"(?:bot)?[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", None),
    ("google-token", "*1//0", r"1//0[A-Za-z0-9_-]{40,250}", mixed),
    (
        "discord-token",
        _DISCORD,
        r"[MNO][A-Za-z0-9]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9])",
        mixed,
    ),
    ("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", None),
    ("mailchimp-key", "*-us", r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])", None),
    (
        "jwt",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,2048}",
        None,
    ),
    (
        "jwt",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{15,4096}\.[A-Za-z0-9_-]{0,1024}\.[A-Za-z0-9_-]{16,24}\.[\w-]{16,8192}\.[\w-]{20,90}",
        None,
    ),
    ("terraform-token", "atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", None),
    (
        "azure-secret",
        "*Q~",
        r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])",
        mixed,
    ),
    ("azure-key", "*AZDO", r"[A-Za-z0-9]{72,76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", None),
    (
        "azure-key",
        "ASt ACR AEh ARm",
        r"[A-Za-z0-9+/]{33,76}\+(?:ASt|ACR|AEh|ARm)[A-Za-z0-9+/]{5,6}={1,2}",
        mixed,
    ),
    ("dynatrace-token", "dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}", None),
    (
        "harness-key",
        "pat. sat.",
        r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
        None,
    ),
    (
        "authress-key",
        "sc_ ext_ scauth_ authress_",
        r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
        None,
    ),
    ("cloudflare-key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}", None),
    ("maxmind-key", "*_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9])", None),
    (
        "onepassword-key",
        "A3-",
        r"A3-[A-Z0-9]{6}-[A-Z0-9]{5,6}-?[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}(?:-[A-Z0-9]{5})?(?![A-Z0-9])",
        has_digit,
    ),
    ("yandex-token", "t1.", r"t1\.[A-Za-z0-9_-]{20,200}={0,2}\.[A-Za-z0-9_-]{86}={0,2}", None),
    (
        "asana-token",
        "*1/1 *2/1",
        r"[12]/[0-9]{15,17}(?:/[0-9]{15,17})?:[0-9a-f]{32}(?![A-Za-z0-9])",
        None,
    ),
    (
        "slack-webhook",
        "hooks.slack.com",
        r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[A-Za-z0-9]{8,}/[\w/]{20,}",
        None,
    ),
    ("discord-webhook", "webhooks", r"(?<=/api/webhooks/)\d{15,20}/[A-Za-z0-9_-]{40,90}", None),
    ("teams-webhook", "IncomingWebhook", r"(?<=/IncomingWebhook/)[0-9a-f]{32}/[0-9a-f-]{36}", None),
    (
        "zapier-webhook",
        "hooks.zapier.com",
        r"(?<=hooks\.zapier\.com/hooks/catch/)[0-9]{4,12}/[A-Za-z0-9]{5,12}",
        None,
    ),
)

# kind, what else must be in the text, marks, the expression that begins at a mark, in any case, a
# test of its `secret`
PLACES: tuple[tuple[str, str, str, str, Test | None], ...] = (
    (
        "authorization",
        "",
        "authorization",
        (
            r"authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic|token|digest|apikey|ssws|key|geniekey|oauth)[ "
            r"\t]{1,4}(?P<secret>[A-Za-z0-9._~+/=:-]{6,8192}+)"
        ),
        _credential,
    ),
    (
        "authorization",
        "",
        "bearer",
        r"(?<![A-Za-z0-9])bearer[ \t]{1,4}(?P<secret>[A-Za-z0-9._+/=-]{16,8192}+)",
        lambda value: has_digit(value) and not wordy(value),
    ),
    (
        "okta-token",
        "",
        "ssws",
        r"(?<![A-Za-z0-9])ssws[ \t]{1,4}(?P<secret>00[A-Za-z0-9_-]{36,44})",
        None,
    ),
    (
        "url-password",
        "",
        "://",
        r"://[^\s/?#:@\"'<>]{0,128}:(?P<secret>[^\s/?#\"'<>\[\]]{1,256})@(?=[A-Za-z0-9\[])",
        _in_url,
    ),
    (
        "otp-secret",
        "://",
        "otpauth://",
        r"otpauth://[^\s\"'<>?]{1,200}\?(?:[^\s\"'<>]{0,200}&)?secret=(?P<secret>[A-Za-z2-7=]{16,128}+)",
        None,
    ),
    (
        "signature",
        "",
        "sig= signature=",
        r"(?:(?<=[?&])sig|(?<=-)signature)=(?P<secret>[A-Za-z0-9%+/=_-]{20,600}+)",
        has_digit,
    ),
    (
        "cookie",
        "",
        "cookie:",
        r"(?<![A-Za-z])cookie:[ \t]{0,4}(?P<secret>[^\s=;\"'`]{1,64}=[^\r\n\"'`]{8,4096}+)",
        _cookies,
    ),
    (
        "password",
        "",
        "curl",
        (
            r"curl [^\n]{0,200}?(?<= )(?:-u|--user|--proxy-user)[ "
            r"=]?[\"']?[^\s:\"'$-][^\s:\"'$]{0,63}:(?P<secret>[^\s\"'`$]{1,}+)"
        ),
        not_stand_in,
    ),
    (
        "password",
        "pass",
        "sshpass",
        r"sshpass [^\n]{0,40}?(?<= )-p ?[\"']?(?P<secret>[^\s\"'`$-][^\s\"'`]{1,}+)",
        not_stand_in,
    ),
    (
        "password",
        " -p",
        "mysql mariadb",
        (
            r"(?:mysql|mariadb)[a-z-]{0,8} [^\n|;]{0,200}?(?<= "
            r"-p)[\"']?(?P<secret>[^\s\"'`$-][^\s\"'`]{2,}+)"
        ),
        _argument,
    ),
    (
        "password",
        "",
        "redis-cli",
        r"redis-cli [^\n|;]{0,120}?(?:-a|--pass) [\"']?(?P<secret>[^\s\"'`$-][^\s\"'`]{3,}+)",
        not_stand_in,
    ),
    (
        "password",
        "pass",
        "login",
        r"(?<![A-Za-z])login\s{1,8}\S{1,128}\s{1,8}password\s{1,8}[\"']?(?P<secret>[^\s\"'`$][^\s\"'`]{2,}+)",
        _netrc,
    ),
    (
        "password",
        " login ",
        "login",
        (
            r"(?:(?<=docker )|(?<=podman )|(?<=az )|(?<=registry ))login [^\n|;]{0,160}?(?<= "
            r")(?:-p|--password)[ =][\"']?(?P<secret>[^\s\"'`$-][^\s\"'`]{3,}+)"
        ),
        not_stand_in,
    ),
    (
        "password",
        "pass",
        "--password",
        r"--password [\"']?(?P<secret>[^\s\"'`$-][^\s\"'`]{3,}+)",
        _argument,
    ),
    (
        "password",
        "",
        "pass:",
        r"(?:(?<=-passin )|(?<=-passout )|(?<=-pass ))pass:(?P<secret>[^\s\"'`$]{3,}+)",
        not_stand_in,
    ),
    (
        "password",
        "",
        "wifi:",
        r"wifi:(?:[^;\n]{0,80}+;){0,4}?p:(?P<secret>[^;\n]{4,64}+);",
        not_stand_in,
    ),
    (
        "seed-phrase",
        "",
        "phrase: phrase= mnemonic: mnemonic=",
        r"(?:phrase|mnemonic)[:=]\s{0,4}[\"'`*]{0,3}(?P<secret>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})",
        lambda value: len(value.split()) in (12, 15, 18, 21, 24),
    ),
    (
        "putty-key",
        "",
        "private-lines:",
        (
            r"private-lines: \d{1,3}\s{1,2}(?P<secret>(?:[>\t "
            r"]{0,4}[A-Za-z0-9+/=]{4,76}+(?:\r?\n|\Z)){1,200}+)"
        ),
        None,
    ),
)
