"""Secrets in texts: which names sound like one, which texts look like one, and a masker of values that are known.

Pure, and linear in the length of a text: a run chooses what it writes. Where it can't be told how far a value goes,
more is hidden rather than less. No text gains or loses a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache

from muster.text.terminal_text import strip_terminal_sequences

HIDDEN_VALUE = "(value not shown)"
LONGEST_JUDGED_VALUE = 200  # characters of a value that tell whether it is one
SHORTEST_SECRET = (
    8  # characters of a value that is masked wherever it appears: shorter ones are parts of ordinary words
)

# -- names

_ALWAYS = (
    "passw",
    "passphrase",
    "credential",
    "bearer",
    "webhook",
    "api_key",
    "apikey",
    "access_key",
    "secret_key",
    "private_key",
    "authorization",
    "_pwd",
    "passcode",
    "connection_string",
    "connectionstring",
    "conn_str",
)
_WORDS = ("pat", "dsn", "jwt")  # as words of their own: not in `path`, `pattern`, `compat`
_NO_PASS = r"(?:forward|backward|first|second|single|multi|last|train|test|eval|all|(?<![a-z])(?:n|by|in))_"
_PASS = rf"(?:pg)?pass|(?!\w*{_NO_PASS}pass$)\w+_pass"
_COUNTS = r"(?<![a-z])(?:n|num|max|min|new|total|per|avg|mean)"
_PARTS = (
    r"(?:dims?|size|len(?:gth)?|count|num(?:ber)?|names?|types?|index|mask|padding|proj|heads?|bias|value|metric"
    r"|prefix|steps?|limit)"
)
# what trainings count, cut up and look up is no secret; nor is who wrote something, or which desktop runs
_HARMLESS = {
    "token": rf"tokeni[sz]|{_COUNTS}_?(?:new_?)?tokens?"
    rf"|tokens?_?(?:{_PARTS}|per|s?drop|mix|merg|embed|wise|level|budget|loss|acc|rate)"
    r"|(?<![a-z])(?:pad|eos|bos|unk|sep|cls|mask|special|image|patch|visual|context|vocab|train|seen)_?tokens?(?:_?ids?)?",
    "key": rf"key(?:point|frame|word|map|press|stroke|note|board|ed|ring|[_ ]?error|chain)|keys?_?{_PARTS}"
    rf"|{_COUNTS}_?keys|(?:mon|tur|hoc|don|joc|whis)key|(?<![a-z])(?:obs|observation|image|metric|monitor|sort|group|state|action"
    r"|reward|label|input|output|target|query|dict|row|col|prng|rng|jax)_?keys?(?![a-z])",
    "auth": r"author(?!i[sz])|authentic(?!at)",
    "session": rf"sessions?_?(?:{_PARTS}|time|timeout|duration|class|desktop|path|seat|manager|bus|start|end)"
    rf"|(?:{_COUNTS}|desktop|gdm|trials?|multi|single|cross|within)_?sessions?",
    "private": r"(?:differentially|non)_?private"
    r"|private_?(?:pool|layers?|dim|heads?|encoder|epsilon|space|net|learning|split)",
    "secret": r"secretar",
    "cookie": r"cookie_?cutter",
}
_NUMBER = r"[+-]?(?:\d{1,6}(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?|true|false|yes|no|on|off|none|null"  # or a switch


@cache
def _compile_lazily(text: str, flags: int = 0) -> re.Pattern[str]:
    """Compiled when it is first needed: most texts need none, and `status` is asked all day long."""
    return re.compile(text, flags)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a name sounds like that of a secret."""
    plain = name.lower().lstrip("-").replace("-", "_")
    if _is_surely_secret_name(plain) or any(_has_separate_word(word, plain) for word in _WORDS):
        return True
    if plain.endswith("pass") and _compile_lazily(_PASS).fullmatch(plain):  # DB_PASS, and no `forward_pass`
        return True
    return any(
        stem in plain and stem in _compile_lazily(harmless).sub("", plain) for stem, harmless in _HARMLESS.items()
    )


def _is_surely_secret_name(plain: str) -> bool:
    return any(word in plain for word in _ALWAYS)


def _has_separate_word(word: str, plain: str) -> bool:
    return word in plain and _compile_lazily(rf"(?<![a-z]){word}(?![a-z])").search(plain) is not None


def should_hide_value(name: str, value: str) -> bool:
    """Whether a value of this name is hidden: a small number of a `key_dim` that nobody listed is no secret."""
    if not is_secret_name(name):
        return False
    return _is_surely_secret_name(name.lower().lstrip("-").replace("-", "_")) or not _is_harmless_number(
        value.strip("'\"")
    )


def _is_harmless_number(value: str) -> bool:
    return len(value) < 16 and _compile_lazily(_NUMBER, re.IGNORECASE).fullmatch(value) is not None


# -- what looks like a secret by itself

_WEBHOOKS = (
    r"hooks\.slack\.com/(?:services|workflows|triggers)/|(?:discord|discordapp)\.com/api/(?:v\d+/)?webhooks/"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/(?:v2/)?hook/|api\.telegram\.org/bot"
    r"|office\.com/webhook(?:b2)?/|oapi\.dingtalk\.com/robot/send\?|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?"
)
_TOKENS = (
    r"gh[pousr]_\w{16,}+|github_pat_\w{16,}+|hf_[A-Za-z0-9]{16,}+|sk-(?=[\w-]*\d)[\w-]{16,}+|(?:AKIA|ASIA)[0-9A-Z]{12,}+"
    r"|xox[a-z]-[\w-]{8,}+|AIza[\w-]{16,}+|eyJ[\w-]{6,}+(?:\.[\w-]*+)+|glpat-[\w-]{12,}+|npm_\w{20,}+|pypi-[\w-]{20,}+"
    r"|LTAI[0-9A-Za-z]{12,}+|AKID[0-9A-Za-z]{13,}+|ya29\.[\w-]{16,}+"
)
_QUERY = r"[?&;](?:amp;)?([\w.%-]++)=(?!\(value not shown\))([^\s&#'\"<>\\`]++)"
_IN_QUERY = r"key|token|sig|secret|auth|passw|credential|session"
# each alternative ends where its secret begins; what follows says how far it goes
_SHAPES = (
    (r"://[^\s/:@'\"]*+:", r"[^\s/'\"\\]*@", ("://",)),  # user:password@; the @ stays
    (r"://[^\s/:@'\"]++:(?!\d*/)", r"[^\s'\"\\@]{1,200}@", ("://",)),  # with a / in it
    (r"://", r"(?=[^\s/:@'\"]*\d)[^\s/:@'\"]{16,}+(?=@)", ("://",)),  # token@
    (rf"(?i:{_WEBHOOKS})", r"[^\s'\"<>`\\]++", ("hook", "telegram", "dingtalk", "weixin")),
    (
        r"(?i:(?<![\w-])(?:proxy-)?authorization['\"]?[ \t]*+[:=][ \t]*+(?:b(?=['\"]))?+['\"]?+)(?!os\.|\$)",
        r"[^'\"\n\r\\]++",
        ("uthorization", "UTHORIZATION"),
    ),
    (r"(?i:(?<![\w-])(?:set-)?cookie['\"]?[ \t]*+:[ \t]*+['\"]?)", r"[^'\"\n\r\\]++", ("ookie", "OOKIE")),
    (
        r"(?i:(?<!\w)bearer(?:[ \t]++|%20|\+|=))['\"]?(?!(?i:auth|token|scheme|header|required|realm))",
        r"[^\s'\",;<>(){}\[\]\\`]{4,}+",
        ("earer", "EARER"),
    ),
    (r"(?<!\w)[Bb]asic[ \t]++(?=[\w+/-]*[\d=]|[a-z]++[A-Z])", r"[\w+/-]{6,}+=*+", ("asic ",)),
)
_PEM = (  # one that is cut off goes on to a quote, or to the end
    r"-----BEGIN [A-Z0-9 ]{0,60}PRIVATE KEY[A-Z ]{0,20}-----(?:(?!-----END )[^'\"])*+"
    r"(?:-----END [A-Z0-9 ]{0,80}-----)?"
)
_LINE = r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+"


@cache
def _compile_secret_shapes() -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    not_hidden = r"(?!\(value not shown\))"
    built = [(re.compile(f"({head}){not_hidden}(?:{value})"), hints) for head, value, hints in _SHAPES]
    tokens = re.compile(rf"((?<![A-Za-z0-9_-]))(?:{_TOKENS})")
    return (*built, (tokens, ("_", "sk-", "IA", "xox", "AIza", "eyJ", "glpat-", "pypi-", "LTAI", "AKID", "ya29.")))


def mask_secret_shapes(text: str) -> str:
    """What is a secret whatever it is called: credentials in URLs, headers, keys of known services, webhooks."""
    if "PRIVATE KEY-----" in text:
        text = _compile_lazily(_PEM).sub(lambda found: _compile_lazily(_LINE).sub(HIDDEN_VALUE, found[0]), text)
    for pattern, hints in _compile_secret_shapes():
        if any(hint in text for hint in hints):
            text = pattern.sub(_mask_shape_match, text)
    return (
        _compile_lazily(_QUERY).sub(_mask_query_parameter, text)
        if "=" in text and ("?" in text or "&" in text)
        else text
    )


def _mask_query_parameter(found: re.Match[str]) -> str:
    """`?api_key=...` of a URL."""
    secret = _compile_lazily(_IN_QUERY, re.IGNORECASE).search(found[1]) and not _is_harmless_number(found[2])
    return found[0][: found.start(2) - found.start()] + HIDDEN_VALUE if secret else found[0]


def _mask_shape_match(found: re.Match[str]) -> str:
    return found[1] + HIDDEN_VALUE + ("@" if found[0].endswith("@") and found[1].startswith("://") else "")


# -- names with their values, in whatever a program prints

_PAIR = r"""((?:\\?["'])?)(?<![\w.+-])([\w.+-]++)\1[ \t]*+([:=])(?![:=])[ \t]*+"""
_OPTION = r"""(?<![\w.-])(--?[A-Za-z][\w.-]*+)["']?[ \t]++(?![-\s])"""
_BARE = frozenset(("pass", "key", "keys", "token", "tokens", "session", "sessions", "auth", "private"))
_VALUE = (
    r"""b?(?:"(?:[^"\\\n\r]|\\.)*+"?|'(?:[^'\\\n\r]|\\.)*+'?"""  # in quotes, or to the end of the line
    r"""|(?:[^\s,;&'")}\]]|[,;)}\]](?![\s'"]|$)|&(?!\w+=)|(?<=\\)["'])++)"""
)
_CODE = r"[a-z_]+(?:\.[a-z_]+)+[(\[]?|[A-Za-z_][\w.]*[(\[].*|lambda|os\.environ.*|\$?\{.*"
_ERROR = r"(?:Error|Exception|Warning|Interrupt)$"


def mask_secrets_in_text(text: str) -> str:
    """A text from a run, a person or a program: what is named like a secret, and what looks like one."""
    return _mask_named_values(mask_secret_shapes(text))


def _mask_named_values(text: str) -> str:
    shown: list[str] = []
    at = 0
    for start, name, separator in _find_named_values(text):
        if start < at or text.startswith(HIDDEN_VALUE, start):
            continue
        value = _compile_lazily(_VALUE).match(text, start, start + LONGEST_JUDGED_VALUE)
        if value is None or not _discloses_secret(name, separator, value[0]):
            continue  # its rest was not read: names that follow each other closely would make this quadratic
        shown += [text[at:start], HIDDEN_VALUE]
        whole = _compile_lazily(_VALUE).match(text, start)
        at = whole.end() if whole else value.end()
    return "".join(shown) + text[at:]


def _find_named_values(text: str) -> Iterator[tuple[int, str, str]]:
    """(where its value begins, name, separator), in order."""
    pairs = ((found.end(), found[2], found[3]) for found in _compile_lazily(_PAIR).finditer(text))
    options = (
        ((found.end(), found[1], "--") for found in _compile_lazily(_OPTION).finditer(text))
        if "-" in text
        else iter(())
    )
    found = [each for each in (*pairs, *options) if is_secret_name(each[1])]
    return iter(sorted(found))


def _discloses_secret(name: str, separator: str, value: str) -> bool:
    """Not an exception's name, a line of code, or what a parser says of a `key` or a `token`."""
    if not should_hide_value(name, value) or _compile_lazily(_ERROR).search(name):
        return False
    if (
        separator != "--"
        and _compile_lazily(_CODE, re.DOTALL).fullmatch(value)
        and not (_is_surely_secret_name(name.lower()) and value[:1] not in "${")
    ):
        return False
    bare = name.lower() in _BARE and separator != "--"
    return not bare or (len(value) >= SHORTEST_SECRET and any(map(str.isdigit, value)))


# -- values that are known

_ANY_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?"
_JSON_STRING = r'("(?:[^"\\\n]|\\.)*+"?)(\s*+:)?'  # one that does not end goes on to the end of its line
_ESCAPES = ("\\", "{[}", "{]}", "{*}", "''", "$-$", "&")  # of Markdown, LaTeX and HTML
_ESCAPED = {
    "\\": r"\\textbackslash\{\}",
    "~": r"\\textasciitilde\{\}",
    "^": r"\\textasciicircum\{\}",
    "<": r"\\textless\{\}|&lt;",
    ">": r"\\textgreater\{\}|&gt;",
    "|": r"\\textbar\{\}",
    "[": r"\{\[\}",
    "]": r"\{\]\}",
    "*": r"\{\*\}",
    '"': "''|&quot;",
    "-": r"\$-\$",
    "&": "&amp;",
    "'": "&#x27;",
}
_NO_SECRET = frozenset(("disabled", "anonymous", "required", "undefined", "changeme"))
_PLACE = r"(?:~|\.{0,2})/[^\n]*|unix:[^\n]*|[A-Za-z]:\\[^\n]*"
_PLACE_NAME = r"(?:sock|file|path|dir|folder|home|credentials|cert|authority|control|json|pem)$"
_USERINFO = r"://[^\s/:@'\"]*+:([^\s/'\"]*)@"


def secrets_in_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """Values that are masked wherever they appear. A path to a secret is none: it is told, and opens nothing."""
    for name, value in environment.items():
        if "://" in value:
            yield from (found[1] for found in _compile_lazily(_USERINFO).finditer(value))
        is_place = _compile_lazily(_PLACE).fullmatch(value) and _compile_lazily(_PLACE_NAME, re.IGNORECASE).search(name)
        if is_secret_name(name) and not is_place and value.strip().lower() not in _NO_SECRET:
            yield value


class SecretMasker:
    """Hides known values, in the ways in which programs write them. Cheap where nothing matches."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        found: dict[str, None] = {}
        for value in values:
            for each in (value, value.strip(), *_long_lines_of_value(value)):
                if len(each) >= SHORTEST_SECRET and each not in HIDDEN_VALUE:
                    found.update(dict.fromkeys(_encodings_of_value(each)))
        every = sorted(found, key=lambda each: (-len(each), each))
        self.values = tuple(every)
        self._numbers = {
            each: re.compile(rf"(?<![\da-fA-F.]){re.escape(each)}(?!\.?\d|[a-fA-F])")
            for each in every
            if each.isascii() and _compile_lazily(_ANY_NUMBER).fullmatch(each)
        }
        self._escaped: dict[str, re.Pattern[str]] | None = None

    def literals(self, text: str) -> str:
        """Without the values that are known."""
        for value in self.values:
            if value in text:  # a number is no part of a longer one
                number = self._numbers.get(value)
                text = number.sub(HIDDEN_VALUE, text) if number else text.replace(value, HIDDEN_VALUE)
        return text

    def output(self, text: str) -> str:
        """What Muster itself says: known values, and what looks like a secret. Names are told as they are.

        Numbers stay, whatever password is called like one: those in what Muster says are results and counts.
        """
        return mask_secret_shapes(self._told(text))

    def json_output(self, text: str) -> str:
        """The same of JSON: only in its strings. Keys that Muster itself may have written stay."""
        return text if self.output(text) == text else _compile_lazily(_JSON_STRING).sub(self._json_string, text)

    def table_output(self, text: str, separator: str) -> str:
        """The same of a table: no secret goes on into the next column."""
        if self.output(text) == text:
            return text
        lines = self._told(text).split("\n")
        return "\n".join(separator.join(map(mask_secret_shapes, line.split(separator))) for line in lines)

    def written(self, text: str) -> str:
        """What runs logged, put into a text of Muster's: numbers stay, too."""
        return mask_secrets_in_text(self._told(text))

    def mask(self, text: str) -> str:
        """What a run, a person or a program says."""
        if not text:
            return text
        told = mask_secrets_in_text(self.literals(text))
        return "\n".join(map(self._without_colours, told.split("\n"))) if "\x1b" in told else told

    def _without_colours(self, line: str) -> str:
        """A value that is coloured in pieces would be whole once its reader has dropped the codes."""
        plain = strip_terminal_sequences(line) if "\x1b" in line else line
        return line if plain == line or (told := mask_secrets_in_text(self.literals(plain))) == plain else told

    def _told(self, text: str) -> str:
        for value in self.values:
            if value in text and value not in self._numbers:
                text = text.replace(value, HIDDEN_VALUE)
        if any(sign in text for sign in _ESCAPES):
            if self._escaped is None:
                self._escaped = {
                    each: re.compile(_markup_pattern_of(each)) for each in self.values if not each.isalnum()
                }
            for value, pattern in self._escaped.items():
                if value not in self._numbers:
                    text = pattern.sub(HIDDEN_VALUE, text)
        return text

    def _json_string(self, found: re.Match[str]) -> str:
        import json

        literal, colon = found[1], found[2] or ""
        try:
            content = json.loads(literal)
        except ValueError:
            return self.output(found[0])
        if colon and _compile_lazily(r"[a-z_]+").fullmatch(content):
            return found[0]
        told = self.output(content)
        return found[0] if told == content else json.dumps(told) + colon

    def mask_tail(self, text: str) -> str:
        """The same of a text that was cut out of a longer one: the rest of a value may stand at either end."""
        for value in self.values:
            longest = min(len(value) - 1, len(text))
            for size in range(longest, SHORTEST_SECRET - 1, -1):
                if text.startswith(value[-size:]):
                    text = HIDDEN_VALUE + text[size:]
                    break
            for size in range(longest, SHORTEST_SECRET - 1, -1):
                if text.endswith(value[:size]):
                    text = text[:-size] + HIDDEN_VALUE
                    break
        return self.mask(text)


def _long_lines_of_value(value: str) -> list[str]:
    """Of a key in several lines: logs show them one by one."""
    lines = value.splitlines()
    return [line.strip() for line in lines if len(line.strip()) >= 2 * SHORTEST_SECRET] if len(lines) > 1 else []


def _encodings_of_value(value: str) -> Iterator[str]:
    """As it is, in JSON, in a URL, in a representation, in quotes of a shell."""
    yield value
    if value.isalnum() and value.isascii():
        return
    import json
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogateescape")
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield from (quote(raw), quote(raw, safe=""), quote_plus(raw))
    yield value.replace("'", "'\"'\"'")


def _markup_pattern_of(value: str) -> str:
    """The same in Markdown, LaTeX or HTML."""
    parts = []
    for sign in value:
        plain = rf"\\?{re.escape(sign)}"
        parts.append(sign if sign.isalnum() else rf"(?:{plain}|{_ESCAPED[sign]})" if sign in _ESCAPED else plain)
    return "".join(parts)
