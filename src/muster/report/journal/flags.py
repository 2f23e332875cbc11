"""A recorded command: its script and its flags, laid out to be read, and compared with the last version's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from muster.domain.shell_words import split

WIDTH = 100
LONGEST = 128 << 10  # characters of a command
_FLAG = re.compile(r"--?[A-Za-z][\w.\-/]*")
_SCRIPT = re.compile(r"\S+\.(?:py|sh|R|jl)")


def laid_out(argv: Sequence[str]) -> str:
    """As a shell takes it, flags on lines of their own where one line would be too long."""
    words = [_quoted(word) for word in argv]
    lines = [""]
    for word, group in zip(words, _groups(argv), strict=True):
        fits = len(lines[-1]) + len(word) + 1 <= WIDTH
        if lines[-1] and group and not fits:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip(" ") if lines[-1] else word
    return " \\\n  ".join(lines)


def _quoted(word: str) -> str:
    if any(ord(letter) < 32 for letter in word):
        return "$'" + "".join(_escaped(letter) for letter in word) + "'"
    return shlex.quote(word)


def _escaped(letter: str) -> str:
    if letter in "'\\":
        return f"\\{letter}"
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(letter, f"\\x{ord(letter):02x}" if ord(letter) < 32 else letter)


def _groups(argv: Sequence[str]) -> Iterator[bool]:
    """Whether a word may begin a line: flags may, and words that belong to none."""
    for at, word in enumerate(argv):
        yield at == 0 or bool(_FLAG.match(word)) or not _FLAG.fullmatch(argv[at - 1])


def script_of(argv: Sequence[str]) -> str | None:
    """The first word that is a script and no flag's value; None: a module is run, or none is named."""
    for at, word in enumerate(argv):
        if word == "-m":
            return None
        if _SCRIPT.fullmatch(word) and not (at and argv[at - 1].startswith("--")):
            return word
    return None


def flags_of(argv: Sequence[str]) -> dict[str, str]:
    """Name -> value, `` where it has none; one that comes again counts with its last value."""
    script = script_of(argv)
    words = list(argv)[(argv.index(script) + 1 if script else 1) :]
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, equals, value = word.partition("=")
        if not _FLAG.fullmatch(name):
            continue
        if not equals:
            values = []
            while at < len(words) and not _is_flag(words[at]):
                values.append(words[at])
                at += 1
            value = " ".join(values)
        found[name.lstrip("-").replace("-", "_")] = value
    return found


def _is_flag(word: str) -> bool:
    """A negative number is a value."""
    return _FLAG.fullmatch(word.partition("=")[0]) is not None


def read_command(text: str) -> tuple[str, ...] | None:
    """From a script's line or a code block; None: it can't be split as a shell would split it."""
    joined = re.sub(r"\\\r?\n", " ", text).strip()
    lines = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        return None
    try:
        words = split(lines[0][:LONGEST].removeprefix("$ ")) if len(lines[0]) <= LONGEST else []
    except ValueError:
        return None
    return tuple(words) or None


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str | None, str | None]]:
    """Name, value before, value now; None where it was not there. In the order of the command now."""
    names = [*now, *(name for name in before if name not in now)]
    return [(name, before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)]


def flat(settings: object, before: str = "") -> dict[str, str]:
    """Nested settings by their dotted names. Items of a list go by their key, where they have one."""
    found: dict[str, str] = {}
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            found |= flat(value, f"{before}.{name}" if before else str(name))
    elif isinstance(settings, list | tuple):
        for at, value in enumerate(settings):
            name = str(value.get("key", at)) if isinstance(value, Mapping) else str(at)
            there = f"{before}[{name}]"
            while any(each == there or each.startswith(f"{there}.") for each in found):
                there += "'"
            kept = {key: each for key, each in value.items() if key != "key"} if isinstance(value, Mapping) else value
            found |= flat(kept, there)
    elif settings is not None:
        found[before] = f"{settings:g}" if isinstance(settings, float) else str(settings)
    return found
