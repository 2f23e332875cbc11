"""Which Python a job's command runs: the words to put before `-c`, so that its own environment can be asked."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from muster.domain.shell_words import split
from muster.ports.regular_files import read_start

_PYTHON = re.compile(r"(python|pypy)(\d+(\.\d+)*)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# what makes an environment: a `python` behind it is that environment's
ENVIRONMENTS = frozenset({"conda", "mamba", "micromamba", "uv", "poetry", "pixi", "pipenv", "hatch"})
# what executes the words behind it and nothing else: to put `python -c` there starts no training
LAUNCHERS = ENVIRONMENTS | {
    "env", "nice", "ionice", "taskset", "numactl", "xvfb-run", "stdbuf", "timeout", "chrt", "setsid", "nohup",
}  # fmt: skip
_SCRIPTS = (".py", ".sh", ".bash")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})

Shebang = Callable[[str], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Interpreter:
    words: tuple[str, ...]  # empty: the command names no Python
    certain: bool = True  # False: the environment's own `python`, while the command starts something else


def interpreter(within: Sequence[str], command: Sequence[str], *, shell: bool, shebang: Shebang) -> Interpreter:
    """`command` as it is executed, less `within`; with a shell its last word is the text."""
    words = _simple(command[-1]) if shell and command else list(command)
    found = _named(words)
    if found:
        return Interpreter((*within, *found))
    if within:
        known = _base(within[0]) in ENVIRONMENTS
        return Interpreter((*within, "python"), certain=False) if known else Interpreter(())
    script = shebang(words[0]) if words else None
    return Interpreter(tuple(script)) if script and _named(script) else Interpreter(())


def shebang_in(cwd: str, path: str) -> Shebang:
    """Reads the first line of the script that a word names: `accelerate` and its like are scripts of some Python."""

    def read(word: str) -> list[str] | None:
        found = str(Path(cwd) / word) if "/" in word else shutil.which(word, path=path)
        try:
            first = read_start(found or "", 500).partition(b"\n")[0]
            return split(first[2:].decode("utf-8", "replace")) if first.startswith(b"#!") else None
        except (OSError, ValueError):  # an open quote, a name that no file can have: nothing is known of it
            return None

    return read


def _named(words: Sequence[str]) -> tuple[str, ...]:
    """Up to and with the Python that the words name, where nothing but launchers stands before it."""
    if not words:
        return ()
    if _is_python(words[0]):
        return (words[0],)
    if _base(words[0]) not in LAUNCHERS:
        return ()
    for at, word in enumerate(words[1:], 1):
        if _is_python(word):
            return tuple(words[: at + 1])
        if word.endswith(_SCRIPTS):  # `uv run train.py` runs it with the environment's own
            return (*words[:at], "python") if _base(words[0]) == "uv" and word.endswith(".py") else ()
        if _base(word) in _SHELLS:
            return ()
    return ()


def _simple(text: str) -> list[str]:
    """The first command of a shell text, less the assignments before it; nothing where it is more than words."""
    try:
        words = split(text, comments=True)
    except ValueError:
        return []
    first = next((at for at, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), len(words))
    return words[first:]


def _is_python(word: str) -> bool:
    return _PYTHON.fullmatch(_base(word)) is not None


def _base(word: str) -> str:
    return PurePath(word).name
