"""Whether what a job's command runs is there: its program, its script, its module. Nothing of it is executed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from muster.acts.launched import Target, launched
from muster.acts.programs import found, meant, not_executable
from muster.domain.shell_words import split_commands
from muster.domain.template import for_shell

LONGEST = 4096  # characters of a path: no file has a longer one
UNKNOWN = "\ue000"  # stands for what only an attempt knows: {out}, {train.output}, {last.checkpoint}
_OPERATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")", ">", ">>", "<", "|&", ";;"})
_BUILTINS = frozenset(
    {"cd", "source", ".", "export", "set", "unset", "ulimit", "umask", "eval", "exec", "trap", "alias"}
)

Told = tuple[str, str, bool]  # what is wrong, how to mend it, whether it surely fails


def missing(words: Sequence[str], cwd: str, path: str) -> Told | None:
    """`words`: as they are executed, without a shell. None: it is there, or can't be known from here."""
    first = _program(Target("program", words[0], 0), cwd, path) if UNKNOWN not in words[0] else None
    target = launched(words)
    if first or target is None or UNKNOWN in target.name:
        return first
    if target.kind == "program":
        return _program(target, cwd, path)
    return _module(target, Path(cwd)) if target.kind == "module" else _script(target, Path(cwd))


def missing_in_shell(text: str, cwd: str) -> Told | None:
    """The first script of a shell's text that is not there; what an earlier command may make is only doubted."""
    folder: Path | None = Path(cwd)
    before = folder
    for words in _commands(text):
        if words[0] == "cd":
            before, folder = folder, _moved(folder, words)
            continue
        target = launched(words)
        if target is None or target.kind != "script" or UNKNOWN in target.name or len(target.name) > LONGEST:
            continue
        if before:
            target = replace(target, name=target.name.replace("$OLDPWD", str(before)))
        if for_shell(target.name):
            continue
        if folder is None and not target.name.startswith("/"):
            continue
        told = _script(target, folder or Path("/"))
        if told:
            return told[0], told[1], False
    return None


def _moved(folder: Path | None, words: Sequence[str]) -> Path | None:
    where = words[1] if len(words) == 2 else ""
    if not where or UNKNOWN in where or for_shell(where) or where.startswith("-"):
        return None
    if folder is None and not where.startswith("/"):
        return None
    moved = Path(folder or "/", where)
    return moved if len(str(moved)) <= LONGEST else None


def _commands(text: str) -> Iterator[list[str]]:
    """The simple commands of a text, in order, less the assignments before each."""
    try:
        words = split_commands(text)
    except ValueError:  # an open quote: told by who reads the file
        return
    found_: list[str] = []
    for word in [*words, ";"]:
        if word in _OPERATORS:
            if found_:
                yield found_
            found_ = []
        elif found_ or not word.partition("=")[0].isidentifier() or "=" not in word:
            found_.append(word)


def _program(target: Target, cwd: str, path: str) -> Told | None:
    if target.own_path and "/" not in target.name:
        return None  # an environment's own: it is asked later
    if not_executable(target.name, cwd):
        return f"{target.name} is not executable", f"chmod +x {shlex.quote(target.name)}", target.sure
    if found(target.name, cwd, path):
        return None
    if target.name in _BUILTINS:
        instead = "`shell: true`, or `cwd: FOLDER` of the job" if target.name == "cd" else "`shell: true`"
        return f"{target.name!r} is a part of the shell and no program, and no shell runs this", instead, target.sure
    hint = f"is it installed, and is the right environment active? It is looked for in PATH and in {cwd}"
    return f"the command {target.name!r} was not found", _meant(target, Path(cwd)) or hint, target.sure


def _script(target: Target, cwd: Path) -> Told | None:
    file = cwd / target.name
    try:
        if file.is_file() or (file / "__main__.py").is_file():
            return None
        is_folder = file.is_dir()
        is_there = file.exists()
    except OSError:
        return None  # a folder that can't be looked into
    if is_there and not is_folder:
        return None  # a pipe, a device
    what = f"{target.name} is a folder without a __main__.py" if is_folder else f"there is no file {target.name}"
    looked = "mend the name" if target.name.startswith("/") else f"it is looked for in {cwd}; mend the name, or `cwd:`"
    return what, _meant(target, cwd) or looked, target.sure


def _meant(target: Target, cwd: Path) -> str:
    part = for_shell(target.name)
    if part:
        return f"no shell replaces {part} here: write the path itself, or `shell: true`"
    near = meant(cwd, target.name) if "/" in target.name or target.kind == "script" else None
    return f"did you mean '{near}'?" if near else ""


def _module(target: Target, cwd: Path) -> Told | None:
    """Only a package of the run's own folder can be looked into; an installed one is its environment's affair."""
    first, *rest = target.name.split(".")
    if not all(part.isidentifier() for part in (first, *rest)) or not (cwd / first).is_dir():
        return None
    own = (cwd / first / "__init__.py").is_file()  # else an installed package of that name would count
    folder = cwd / first
    for at, part in enumerate(rest):
        last = at == len(rest) - 1
        if last and (folder / f"{part}.py").is_file():
            return None
        folder = folder / part
    if (folder / "__main__.py").is_file():
        return None
    if any(cwd.glob(f"{'/'.join((first, *rest))}.*so")):
        return None
    place = "/".join((first, *rest))
    near = meant(cwd, f"{place}.py")
    module = near.removesuffix(".py").replace("/", ".") if near else ""
    hint = f"did you mean '{module}'?" if module else f"it is looked for as {place}.py in {cwd}"
    return f"there is no module {target.name}", hint, own and target.sure
