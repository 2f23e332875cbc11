"""Finds a derived file's stamp and holds it against what is there now."""

from __future__ import annotations

import shlex
from pathlib import Path

from muster.acts.stamping import stamps
from muster.acts.trace import Line, Trace, few, trace
from muster.domain.errors import UsageError
from muster.domain.wording import counted
from muster.ports.regular_files import read_regular
from muster.report.stamp import Stamp
from muster.wiring.desk import Desk
from muster.wiring.verifying import states_of

LARGEST = 64 << 20  # bytes of a text that is traced by its line


def traced(desk: Desk, file: Path, here: Path, claim: str | None = None) -> Trace:
    """`file` is relative to where the command was called, or to the campaign; FILE:12 means its line 12."""
    file, number = _line(file, here)
    path, stamp = _stamped(desk, file, here)
    state = next(each for each in states_of(desk, [stamp]) if each.path == path)
    return trace(stamp, path, state, claim, None if number is None else _text_of(desk.root / path, number))


def _line(file: Path, here: Path) -> tuple[Path, int | None]:
    name, _, number = str(file).rpartition(":")
    if name and number.isascii() and number.isdigit() and not (here / file).exists():
        return Path(name), int(number)
    return file, None


def _stamped(desk: Desk, file: Path, here: Path) -> tuple[str, Stamp]:
    known = {path: stamp for stamp in stamps(desk.root) for path in stamp.files}
    places = {(desk.root / path).resolve(): path for path in known}
    for start in (here.absolute(), Path.cwd(), desk.root, desk.root / "reports"):
        name = places.get((start / file).resolve())
        if name is not None:
            return name, known[name]
    near = [path for path in known if Path(path).name == file.name]
    if near:
        raise UsageError(f"{file} carries no stamp", hint=f"did you mean {near[0]}?")
    hint = f"stamped are: {few(list(known), 5)}" if known else "`muster report` makes reports"
    if str(file) in desk.load().cells:
        why = f"`muster why {shlex.quote(str(file))}`"
        raise UsageError(f"{file} is a cell, no file", hint=f"{why} tells how it came about")
    name, _, line = str(file).rpartition(":")
    if name and any((start / name).is_file() for start in (here, Path.cwd(), desk.root)):
        raise UsageError(f"{line!r} is no line of {name}", hint=f"write its number: {name}:12")
    found = [start / file for start in (here, Path.cwd(), desk.root) if (start / file).exists()]
    if found and found[0].is_dir():
        raise UsageError("this is a folder; one file can be traced", where=str(found[0].absolute()), hint=hint)
    what = "was not derived by Muster: it carries no stamp" if found else "does not exist"
    raise UsageError(f"{file} {what}", hint=hint)


def _text_of(path: Path, number: int) -> Line:
    try:
        lines = read_regular(path, LARGEST).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", where=str(path)) from None
    if not 0 < number <= len(lines):
        raise UsageError(f"{path.name} has {counted(len(lines), 'line')}", where=str(path))
    return Line(number, lines[number - 1])
