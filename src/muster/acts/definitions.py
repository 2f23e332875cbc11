"""By which definition each cell was made, and where runs that one table holds were made by different ones."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import combinations

from muster.acts.past import Past, Snapshot
from muster.acts.take_in import CONFIG_SUFFIXES
from muster.domain.attempt import CellRecord
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell
from muster.plan.commands import Place, command, values
from muster.stats.flag_types import Mixture

Parts = Mapping[str, str]  # "command", "env LR", "steps", ... -> its text
Change = tuple[str, str, str]  # part, older text, newer text
CONTENTS = "contents"  # of config files that the command names: what is in them is known by a hash only
BETWEEN = " ... "  # words of a command that differ
LONGEST = 160  # of a text that is named in a message


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt that a DONE cell rests on."""

    cell: Cell
    campaign: str  # the hash of the one that was in force


Sides = tuple[dict[str, Run], dict[str, Run]]  # by the older and by the newer text
Found = dict[tuple[Change, bool], Sides]  # True: of no one change, the texts are what each side ran


def mixtures(records: Iterable[CellRecord], past: Past, chains: Mapping[str, Sequence[int]]) -> Iterator[Mixture]:
    """Where cells of one job ran by definitions that differ in more than the values of their axes.

    A change between two campaigns matters where it would have changed a run of each: had it left all runs of one side
    as they are, those would be the same under both. `chains`: the attempts that a cell rests on, where it was resumed.
    """
    by_job: dict[str, dict[str, list[Run]]] = {}
    for run in _runs(records, past, chains):
        by_job.setdefault(run.cell.job, {}).setdefault(run.campaign, []).append(run)
    order = {name: at for at, name in enumerate(dict.fromkeys(each.campaign for each in past.begun))}
    for job, by_campaign in by_job.items():
        found: Found = {}
        for older, newer in combinations(sorted(by_campaign, key=order.__getitem__), 2):
            _compare(past.snapshots(older), past.snapshots(newer), by_campaign[older], by_campaign[newer], found)
        for ((part, was, is_), as_run), (before, after) in found.items():
            yield Mixture(job, part, was, is_, tuple(before), tuple(after), _rows(before), _rows(after), as_run)


def outdated_cells(
    records: Iterable[CellRecord], past: Past, now: Snapshot, but: frozenset[tuple[str, str]] = frozenset()
) -> Iterator[Mixture]:
    """Cells that were made by another definition than the campaign file has now; parts in `but` are told elsewhere."""
    found: dict[tuple[str, Change], dict[str, Run]] = {}
    for run in _runs(records, past, {}):
        then = past.snapshots(run.campaign)
        told = changes(run, then, now) or () if then else ()
        for change in (each for each in told if (run.cell.id, each[0]) not in but):
            found.setdefault((run.cell.job, change), {})[run.cell.id] = run
    for (job, (part, was, is_)), runs in found.items():
        yield Mixture(job, part, was, is_, tuple(runs), (), _rows(runs))


def _runs(records: Iterable[CellRecord], past: Past, chains: Mapping[str, Sequence[int]]) -> Iterator[Run]:
    in_force = past.in_force()
    for record in records:
        done = record.completed
        chain = chains.get(record.cell.id) or ([done.n] if done else [])
        for attempt in (each for each in record.attempts if each.n in chain):
            name = in_force.get(attempt.key)  # the log is read under the names of today
            if name and past.snapshots(name):
                yield Run(record.cell, name)


def _compare(
    was: Snapshot | None, is_: Snapshot | None, older: Sequence[Run], newer: Sequence[Run], found: Found
) -> None:
    if was is None or is_ is None or _alike(was, is_, older[0].cell.job, (*older, *newer)):
        return
    changed = [[(run, changes(run, was, is_, renamed=True)) for run in side] for side in (older, newer)]
    # a value that one of the two does not know can't be compared: then the other side tells
    unknown = [all(each is None for _, each in side) for side in changed]
    touched = [unknown[at] or any(each for _, each in side) for at, side in enumerate(changed)]
    if not all(touched) or all(unknown):
        return
    told: dict[Change, Sides] = {}
    for at, side in enumerate(changed):
        for run, each in side:
            for change in each or ():
                told.setdefault(change, ({}, {}))[at][run.cell.id] = run
    for change, sides in told.items():
        whose = [own or _touched_in(change[0], changed[at]) for at, own in enumerate(sides)]
        if all(sides):
            _add(found, change, False, sides)
        elif all(whose):
            _stand(found, change, whose, [_texts(change[0], runs, was, is_, at) for at, runs in enumerate(whose)])


def _stand(
    found: Found, change: Change, whose: Sequence[dict[str, Run]], ran: Sequence[dict[str, dict[str, Run]]]
) -> None:
    """Only one side tells of this change: where its words are not those of what the other ran, each has its own."""
    if all(_holds(change, at, text) for at in (0, 1) for text in ran[at]):
        _add(found, change, False, whose)
        return
    for i in range(max(map(len, ran))):  # each text of each side is told once
        (old, before), (new, after) = (list(texts.items())[min(i, len(texts) - 1)] for texts in ran)
        if old != new:
            _add(found, _change(change[0], old, new), True, (before, after))


def _add(found: Found, change: Change, as_run: bool, runs: Sequence[Mapping[str, Run]]) -> None:
    for known, more in zip(found.setdefault((change, as_run), ({}, {})), runs, strict=True):
        known.update(more)


def _texts(part: str, runs: Mapping[str, Run], was: Snapshot, is_: Snapshot, at: int) -> dict[str, dict[str, Run]]:
    """This part, as it was run -> whose."""
    found: dict[str, dict[str, Run]] = {}
    for name, run in runs.items():
        ran = _definitions(run, was, is_, renamed=True)[at] or {}
        found.setdefault(ran.get(part, ""), {})[name] = run
    return found


def _holds(change: Change, at: int, ran: str) -> bool:
    """Whether the side's text of a change that only the other side tells is true of what was run."""
    part, mine, other = change[0], change[1 + at], change[2 - at]
    if part == CONTENTS:
        return True
    if part != "command":
        return ran == mine
    return _says(ran, mine) if mine else not _says(ran, other)


def _says(text: str, words: str) -> bool:
    return all(f" {each} " in f" {text} " for each in words.split(BETWEEN))


def _touched_in(part: str, side: Iterable[tuple[Run, tuple[Change, ...] | None]]) -> dict[str, Run]:
    """Runs that stand against a change of this part that only the other side tells.

    Where another part of a run changed, nobody knows whether its config files were rewritten, too.
    """
    return {
        run.cell.id: run for run, each in side if each is None or any(part in (CONTENTS, own) for own, _, _ in each)
    }


def _alike(was: Snapshot, is_: Snapshot, job: str, runs: Iterable[Run]) -> bool:
    """A quick look: the same job, the same values as far as both have them. Most campaigns only grow."""
    jobs = [next((each for each in at.campaign.jobs if each.name == job), None) for at in (was, is_)]
    if jobs[0] is None or jobs[0] != jobs[1] or was.campaign.env != is_.campaign.env or was.former != is_.former:
        return False
    for name in jobs[0].axes:
        known = {value.name: value for value in was.campaign.axis(name).values}
        if any(known.get(value.name, value) != value for value in is_.campaign.axis(name).values):
            return False
    names = [run.cell.id for run in runs]
    return all(was.hashes.get(name) == is_.hashes.get(name, was.hashes.get(name)) for name in names)


def changes(run: Run, was: Snapshot, is_: Snapshot, *, renamed: bool = False) -> tuple[Change, ...] | None:
    """What of the cell's definition differs; None: one of the two campaigns has no such cell.

    `renamed`: both ran. Then a value that had another name counts, where the command got its name.
    """
    before, after = _definitions(run, was, is_, renamed=renamed)
    if before is None or after is None:
        return None
    found = []
    for part in dict.fromkeys((*before, *after)):
        old, new = before.get(part, ""), after.get(part, "")
        if old != new:
            found.append(_change(part, old, new))
    if not found and (files := _rewritten(run, was, is_)):
        found.append((CONTENTS, _cut(files), _cut(files)))
    return tuple(found)


def _change(part: str, old: str, new: str) -> Change:
    """Of a command the words that differ."""
    was, is_ = changed_words(old, new) if part == "command" else (old, new)
    return part, _cut(was), _cut(is_)


def _definitions(run: Run, was: Snapshot, is_: Snapshot, *, renamed: bool) -> tuple[Parts | None, Parts | None]:
    names = [
        {axis: at.former.get((axis, value.name), value.name) for axis, value in run.cell.values} for at in (was, is_)
    ]
    other = [axis for axis, name in names[0].items() if renamed and name != names[1][axis]]
    told = [{axis: each[axis] for axis in other} for each in names]
    return definition(run, was, told[0]), definition(run, is_, told[1])


def definition(run: Run, at: Snapshot, names: Mapping[str, str] | None = None) -> Parts | None:
    """What the cell executes under that campaign, with stand-ins for its place and the names of its values.

    `names`: by axis, those that are told.
    """
    found = _as_declared(run, at.campaign)
    if found is None:
        return None
    job, own = found
    place = Place(n=0, out="{out}", slots=("{slot}",), outputs={need: f"{{{need}.output}}" for need in job.needs})
    filled = {
        **values(job, own, place), "gpu": "{gpu}", "device": "{device}", "port": "{port}", "cell": "{cell}",
        **{axis: f"{{{axis}}}" for axis in job.axes}, **(names or {}),
    }  # fmt: skip
    env = {**at.campaign.env, **job.env}
    for _, value in own.values:
        env.update(value.env)
    parts = {
        "command": " ".join(word if word.split() == [word] else shlex.quote(word) for word in command(job, filled))
    }
    parts |= {f"env {name}": text for name, text in sorted(env.items())}
    parts |= {"edits": "; ".join(edit for _, value in own.values for edit in value.edits)}
    parts |= {"steps": "" if job.steps is None else str(job.steps), "cwd": job.cwd or ""}
    return {part: _without_root(text, at.root) for part, text in parts.items() if text}


def _as_declared(run: Run, campaign: Campaign) -> tuple[Job, Cell] | None:
    job = next((each for each in campaign.jobs if each.name == run.cell.job), None)
    if job is None or job.axes != tuple(axis for axis, _ in run.cell.values):
        return None
    found = []
    for axis, value in run.cell.values:
        known = next((each for each in campaign.axis(axis).values if each.name == value.name), None)
        if known is None and (value.args or value.env or value.edits):
            return None
        known = known or value  # a plain one, such as a seed that came later, adds nothing that could differ
        found.append((axis, known))
    return job, replace(run.cell, values=tuple(found))


def _rewritten(run: Run, was: Snapshot, is_: Snapshot) -> str:
    """Config files that the command names, if they were changed: all else that the hash covers is the same."""
    name = run.cell.id
    if not was.root or was.root != is_.root:
        return ""
    hashes = [at.hashes.get(name, "").partition("-")[0] for at in (was, is_)]
    jobs = [at.campaign.job(run.cell.job) for at in (was, is_)]
    same = all(getattr(jobs[0], part) == getattr(jobs[1], part) for part in ("resume", "output", "mkdir"))
    if not all(hashes) or hashes[0] == hashes[1] or not same or was.campaign.wandb != is_.campaign.wandb:
        return ""
    words = (definition(run, was) or {}).get("command", "").split()
    return " ".join(word for word in words if word.endswith(CONFIG_SUFFIXES))


def _without_root(text: str, root: str) -> str:
    """A campaign that was moved executes the same."""
    return text.replace(f"{root}/", "").replace(root, ".") if len(root) > 1 else text


def changed_words(old: str, new: str) -> tuple[str, str]:
    """Of two commands the words that differ, each with the option before it."""
    a, b = old.split(), new.split()
    blocks = [each for each in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if each[0] != "equal"]
    found: tuple[list[str], list[str]] = ([], [])
    for _, i1, i2, j1, j2 in blocks:
        option = a[i1 - 1 : i1] if i1 and a[i1 - 1].startswith("-") and b[j1 - 1 : j1] == a[i1 - 1 : i1] else []
        found[0].append(" ".join([*option, *a[i1:i2]]))
        found[1].append(" ".join([*option, *b[j1:j2]]))
    return BETWEEN.join(each for each in found[0] if each), BETWEEN.join(each for each in found[1] if each)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _rows(runs: Mapping[str, Run]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`new` with its seeds, row by row."""
    rows: dict[str, list[str]] = {}
    for run in runs.values():
        names = {axis: value.name for axis, value in run.cell.values}
        seed = names.pop("seed", "")
        rows.setdefault(" ".join(names.values()) or run.cell.job, []).extend([seed] if seed else [])
    return tuple((row, tuple(seeds)) for row, seeds in rows.items())
