"""What was changed since the last version: the script, the flags, the settings of the gates."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from muster.domain.secrets import HIDDEN, hides
from muster.report.journal.facts import Command, Run, Script
from muster.report.journal.flags import changed, flags_of, flat
from muster.report.journal.shown import table
from muster.report.journal.wording import Wording
from muster.report.record_wording import code

SHORT = 12  # digits of a hash
MOST_ROWS = 80
LONGEST = 90  # characters of a value
LEAD = 12  # letters before the first one that differs
_HUNK = re.compile(r"@@ [^@]*@@ ?(.*)")
_NAMES = re.compile(r"\s*(?:async )?(?:def|class) (\w+)")
MOST_LINES = 20_000  # of a script that is compared line by line


def differences_body(now: Run, before: Run, against: str, w: Wording) -> str:
    parts = [w("differences.against", last=against, run=code(before.title))]
    parts += _flags(now.command, before.command, w)
    parts += _gates(now, before, w)
    parts += [f"- {each}" for each in _script(now.command, before.command, w)]
    return "\n\n".join(parts)


def _flags(now: Command | None, before: Command | None, w: Wording) -> Iterator[str]:
    if now is None or before is None:
        yield f"- {w('differences.no_command')}"
        return
    rows = changed(_named(before), _named(now))
    yield _table("differences.flag", rows, w) if rows else f"- {w('differences.same_flags')}"


def _named(command: Command) -> dict[str, str]:
    """What names the run's own folder is no difference."""
    own = command.out
    return {name: value.replace(own, "{out}") if own else value for name, value in flags_of(command.argv).items()}


def _gates(now: Run, before: Run, w: Wording) -> Iterator[str]:
    old = {gate.name: flat(gate.settings) for gate in before.gates if gate.settings}
    for gate in now.gates:
        if gate.name not in old or not gate.settings:
            continue
        rows = changed(old[gate.name], flat(gate.settings))
        name = code(gate.name)
        yield (
            _table("differences.setting", rows, w, gate=name) if rows else f"- {w('differences.same_gate', gate=name)}"
        )


def _table(key: str, rows: Sequence[tuple[str, str | None, str | None]], w: Wording, **parts: object) -> str:
    shown = [
        [name, *(_value(HIDDEN if each and hides(name, each) else each, w) for each in _apart(old, new))]
        for name, old, new in rows[:MOST_ROWS]
    ]
    more = [w("differences.more", n=len(rows) - MOST_ROWS)] if len(rows) > MOST_ROWS else []
    head = [w("head.flag"), w("head.before"), w("head.now")]
    return "\n\n".join([w(key, n=len(rows), **parts), table(head, shown, left=3), *more])


def _apart(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Of long texts that begin alike, what follows after that: cut at their end they would look the same."""
    if not old or not new or max(len(old), len(new)) <= LONGEST:
        return old, new
    alike = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    first = alike - LEAD
    return (old, new) if first <= 0 else (f"…{old[first:]}", f"…{new[first:]}")


def _value(value: str | None, w: Wording) -> str:
    if value is None:
        return w("differences.absent")
    if not value:
        return w("differences.bare")
    return value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"


def _script(now: Command | None, before: Command | None, w: Wording) -> Iterator[str]:
    mine, old = (each.script if each else None for each in (now, before))
    if mine is None or old is None:
        return
    known = {"now": code(mine.path), "before": code(old.path)}
    if mine.sha256 and mine.sha256 == old.sha256:
        yield w("differences.same_script", **known)
        return
    if not (mine.sha256 and old.sha256):
        yield w("differences.unknown_script", **known)
        return
    yield w("differences.script", **known, sha=mine.sha256[:SHORT], old=old.sha256[:SHORT])
    yield _lines(mine, old, w)


def _lines(now: Script, before: Script, w: Wording) -> str:
    """How many lines, and in which functions."""
    if now.text is None or before.text is None:
        return w("differences.no_text")
    old, new = before.text.splitlines(), now.text.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return w("differences.no_text")
    added = removed = 0
    names: list[str] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        added, removed = added + d - c, removed + b - a
        names += _around(new, c, max(c + 1, d))
    where = w("differences.where", names=w.list([code(each) for each in dict.fromkeys(names)], 8)) if names else ""
    return w.sentences(w("differences.lines", added=added, removed=removed), where)


def _around(lines: Sequence[str], first: int, end: int) -> list[str]:
    """The functions that these lines are in, or begin."""
    found = [name[1] for line in lines[first:end] if (name := _NAMES.match(line))]
    for at in range(min(first, len(lines) - 1), -1, -1):
        if name := _NAMES.match(lines[at]):
            return [name[1], *(each for each in found if each != name[1])]
        if lines[at].strip() and not lines[at][:1].isspace() and at != first:
            break
    return found
