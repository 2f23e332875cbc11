"""Which cells of a table were made by different definitions, and what differs: command words, configs, source files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import combinations
from typing import Any

from muster.app.campaign.cell_definitions import CONFIG_SUFFIXES
from muster.app.facts.past_campaigns import CampaignSnapshot, PastCampaigns
from muster.engine.plan.cell_command import AttemptContext, build_command, cell_placeholder_values
from muster.model.attempt import CellRecord
from muster.model.campaign import Campaign, Job
from muster.model.cell import Cell
from muster.stats.red_flags import DefinitionMixture

CodeRecord = Mapping[str, Any]  # `code` of attempt.json
ReadBlobDigest = Callable[
    [str, str], str | None
]  # commit, path -> sha256 of the file in it; None: not there, or nobody knows
FilesBetweenCommits = Callable[[str, str], Iterable[str]]  # two commits -> files of source that differ between them
RESULT_SUFFIXES = (
    ".json",
    ".ipynb",
)  # written by runs as often as read by them; configs that commands name are told elsewhere


def find_changed_sources(
    codes: Mapping[str, CodeRecord], blob: ReadBlobDigest, between: FilesBetweenCommits
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Of the cells of one job, those whose source is another than that of most: (cell, files that differ).

    A file that one of the two does not have is not counted: what uses it has changed, too.
    """
    known = {cell: code for cell, code in codes.items() if code.get("commit") or code.get("files")}
    if len({_identity_of_code_record(code) for code in known.values()}) < 2:
        return
    usual, _ = Counter(map(_identity_of_code_record, known.values())).most_common(1)[0]
    reference = next(code for code in known.values() if _identity_of_code_record(code) == usual)
    found: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for cell, code in known.items():
        name = _identity_of_code_record(code)
        if name not in found:
            found[name] = differing_source_files(reference, code, blob, between)
        if found[name]:
            yield cell, found[name]


def differing_source_files(
    a: CodeRecord, b: CodeRecord, blob: ReadBlobDigest, between: FilesBetweenCommits
) -> tuple[str, ...]:
    if _is_vague_record(a) or _is_vague_record(b):
        return ()
    paths = {*a.get("files", ()), *b.get("files", ())}
    first, second = str(a.get("commit") or ""), str(b.get("commit") or "")
    if first and second and first != second:
        paths |= set(between(first, second))
    found = []
    for path in sorted(path for path in paths if not path.endswith(RESULT_SUFFIXES)):
        one, other = _source_file_digest(a, path, blob), _source_file_digest(b, path, blob)
        if one and other and one != other:
            found.append(path)
    return tuple(found)


def _source_file_digest(code: CodeRecord, path: str, blob: ReadBlobDigest) -> str | None:
    if path in code.get("files", ()):
        return str(code["files"][path])
    if path in code.get("changed", ()) or not code.get("commit"):
        return None
    return blob(str(code["commit"]), path)


def _is_vague_record(code: CodeRecord) -> bool:
    """An older record: it was changed, and in which files is not known."""
    return bool(code.get("dirty")) and "files" not in code


def _identity_of_code_record(code: CodeRecord) -> tuple[Any, ...]:
    return code.get("commit"), code.get("dirty"), tuple(sorted(code.get("files", {}).items()))


DefinitionParts = Mapping[str, str]  # "command", "env LR", "steps", ... -> its text
DefinitionChange = tuple[str, str, str]  # part, older text, newer text
CONTENTS_PART = "contents"  # of config files that the command names: what is in them is known by a hash only
BETWEEN = " ... "  # words of a command that differ
LONGEST_TEXT = 160  # of a text that is named in a message


@dataclass(frozen=True, slots=True)
class DefinedRun:
    """An attempt that a DONE cell rests on."""

    cell: Cell
    campaign: str  # the hash of the one that was in force


ChangeSides = tuple[dict[str, DefinedRun], dict[str, DefinedRun]]  # by the older and by the newer text
Found = dict[tuple[DefinitionChange, bool], ChangeSides]  # True: of no one change, the texts are what each side ran


def find_definition_mixtures(
    records: Iterable[CellRecord], past: PastCampaigns, chains: Mapping[str, Sequence[int]]
) -> Iterator[DefinitionMixture]:
    """Where cells of one job ran by definitions that differ in more than the values of their axes.

    A change between two campaigns matters where it would have changed a run of each: had it left all runs of one side
    as they are, those would be the same under both. `chains`: the attempts that a cell rests on, where it was resumed.
    """
    by_job: dict[str, dict[str, list[DefinedRun]]] = {}
    for run in _runs_behind_cells(records, past, chains):
        by_job.setdefault(run.cell.job, {}).setdefault(run.campaign, []).append(run)
    order = {name: at for at, name in enumerate(dict.fromkeys(each.campaign for each in past.begun))}
    for job, by_campaign in by_job.items():
        found: Found = {}
        for older, newer in combinations(sorted(by_campaign, key=order.__getitem__), 2):
            _compare_campaigns(
                past.snapshots(older), past.snapshots(newer), by_campaign[older], by_campaign[newer], found
            )
        for ((part, was, is_), as_run), (before, after) in found.items():
            yield DefinitionMixture(
                job,
                part,
                was,
                is_,
                tuple(before),
                tuple(after),
                _seed_rows_of_runs(before),
                _seed_rows_of_runs(after),
                as_run,
            )


def find_outdated_cells(
    records: Iterable[CellRecord],
    past: PastCampaigns,
    now: CampaignSnapshot,
    but: frozenset[tuple[str, str]] = frozenset(),
) -> Iterator[DefinitionMixture]:
    """Cells that were made by another definition than the campaign file has now; parts in `but` are told elsewhere."""
    found: dict[tuple[str, DefinitionChange], dict[str, DefinedRun]] = {}
    for run in _runs_behind_cells(records, past, {}):
        then = past.snapshots(run.campaign)
        told = changes_of_definition(run, then, now) or () if then else ()
        for change in (each for each in told if (run.cell.id, each[0]) not in but):
            found.setdefault((run.cell.job, change), {})[run.cell.id] = run
    for (job, (part, was, is_)), runs in found.items():
        yield DefinitionMixture(job, part, was, is_, tuple(runs), (), _seed_rows_of_runs(runs))


def _runs_behind_cells(
    records: Iterable[CellRecord], past: PastCampaigns, chains: Mapping[str, Sequence[int]]
) -> Iterator[DefinedRun]:
    in_force = past.in_force()
    for record in records:
        done = record.completed
        chain = chains.get(record.cell.id) or ([done.n] if done else [])
        for attempt in (each for each in record.attempts if each.n in chain):
            name = in_force.get(attempt.key)  # the log is read under the names of today
            if name and past.snapshots(name):
                yield DefinedRun(record.cell, name)


def _compare_campaigns(
    was: CampaignSnapshot | None,
    is_: CampaignSnapshot | None,
    older: Sequence[DefinedRun],
    newer: Sequence[DefinedRun],
    found: Found,
) -> None:
    if was is None or is_ is None or _define_job_alike(was, is_, older[0].cell.job, (*older, *newer)):
        return
    changed = [[(run, changes_of_definition(run, was, is_, renamed=True)) for run in side] for side in (older, newer)]
    # a value that one of the two does not know can't be compared: then the other side tells
    unknown = [all(each is None for _, each in side) for side in changed]
    touched = [unknown[at] or any(each for _, each in side) for at, side in enumerate(changed)]
    if not all(touched) or all(unknown):
        return
    told: dict[DefinitionChange, ChangeSides] = {}
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
    found: Found,
    change: DefinitionChange,
    whose: Sequence[dict[str, DefinedRun]],
    ran: Sequence[dict[str, dict[str, DefinedRun]]],
) -> None:
    """Only one side tells of this change: where its words are not those of what the other ran, each has its own."""
    if all(_holds(change, at, text) for at in (0, 1) for text in ran[at]):
        _add(found, change, False, whose)
        return
    for i in range(max(map(len, ran))):  # each text of each side is told once
        (old, before), (new, after) = (list(texts.items())[min(i, len(texts) - 1)] for texts in ran)
        if old != new:
            _add(found, _change(change[0], old, new), True, (before, after))


def _add(found: Found, change: DefinitionChange, as_run: bool, runs: Sequence[Mapping[str, DefinedRun]]) -> None:
    for known, more in zip(found.setdefault((change, as_run), ({}, {})), runs, strict=True):
        known.update(more)


def _texts(
    part: str, runs: Mapping[str, DefinedRun], was: CampaignSnapshot, is_: CampaignSnapshot, at: int
) -> dict[str, dict[str, DefinedRun]]:
    """This part, as it was run -> whose."""
    found: dict[str, dict[str, DefinedRun]] = {}
    for name, run in runs.items():
        ran = _definitions(run, was, is_, renamed=True)[at] or {}
        found.setdefault(ran.get(part, ""), {})[name] = run
    return found


def _holds(change: DefinitionChange, at: int, ran: str) -> bool:
    """Whether the side's text of a change that only the other side tells is true of what was run."""
    part, mine, other = change[0], change[1 + at], change[2 - at]
    if part == CONTENTS_PART:
        return True
    if part != "command":
        return ran == mine
    return _says(ran, mine) if mine else not _says(ran, other)


def _says(text: str, words: str) -> bool:
    return all(f" {each} " in f" {text} " for each in words.split(BETWEEN))


def _touched_in(
    part: str, side: Iterable[tuple[DefinedRun, tuple[DefinitionChange, ...] | None]]
) -> dict[str, DefinedRun]:
    """Runs that stand against a change of this part that only the other side tells.

    Where another part of a run changed, nobody knows whether its config files were rewritten, too.
    """
    return {
        run.cell.id: run
        for run, each in side
        if each is None or any(part in (CONTENTS_PART, own) for own, _, _ in each)
    }


def _define_job_alike(was: CampaignSnapshot, is_: CampaignSnapshot, job: str, runs: Iterable[DefinedRun]) -> bool:
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


def changes_of_definition(
    run: DefinedRun, was: CampaignSnapshot, is_: CampaignSnapshot, *, renamed: bool = False
) -> tuple[DefinitionChange, ...] | None:
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
    if not found and (files := _rewritten_config_files(run, was, is_)):
        found.append((CONTENTS_PART, _cut_definition_text(files), _cut_definition_text(files)))
    return tuple(found)


def _change(part: str, old: str, new: str) -> DefinitionChange:
    """Of a command the words that differ."""
    was, is_ = changed_command_words(old, new) if part == "command" else (old, new)
    return part, _cut_definition_text(was), _cut_definition_text(is_)


def _definitions(
    run: DefinedRun, was: CampaignSnapshot, is_: CampaignSnapshot, *, renamed: bool
) -> tuple[DefinitionParts | None, DefinitionParts | None]:
    names = [
        {axis: at.former.get((axis, value.name), value.name) for axis, value in run.cell.values} for at in (was, is_)
    ]
    other = [axis for axis, name in names[0].items() if renamed and name != names[1][axis]]
    told = [{axis: each[axis] for axis in other} for each in names]
    return parts_of_definition(run, was, told[0]), parts_of_definition(run, is_, told[1])


def parts_of_definition(
    run: DefinedRun, at: CampaignSnapshot, names: Mapping[str, str] | None = None
) -> DefinitionParts | None:
    """What the cell executes under that campaign, with stand-ins for its place and the names of its values.

    `names`: by axis, those that are told.
    """
    found = _job_and_cell_as_declared(run, at.campaign)
    if found is None:
        return None
    job, own = found
    place = AttemptContext(
        n=0, out="{out}", slots=("{slot}",), outputs={need: f"{{{need}.output}}" for need in job.needs}
    )
    filled = {
        **cell_placeholder_values(job, own, place),
        "gpu": "{gpu}",
        "device": "{device}",
        "port": "{port}",
        "cell": "{cell}",
        **{axis: f"{{{axis}}}" for axis in job.axes},
        **(names or {}),
    }
    env = {**at.campaign.env, **job.env}
    for _, value in own.values:
        env.update(value.env)
    parts = {
        "command": " ".join(
            word if word.split() == [word] else shlex.quote(word) for word in build_command(job, filled)
        )
    }
    parts |= {f"env {name}": text for name, text in sorted(env.items())}
    parts |= {"edits": "; ".join(edit for _, value in own.values for edit in value.edits)}
    parts |= {"steps": "" if job.steps is None else str(job.steps), "cwd": job.cwd or ""}
    return {part: _strip_campaign_root(text, at.root) for part, text in parts.items() if text}


def _job_and_cell_as_declared(run: DefinedRun, campaign: Campaign) -> tuple[Job, Cell] | None:
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


def _rewritten_config_files(run: DefinedRun, was: CampaignSnapshot, is_: CampaignSnapshot) -> str:
    """Config files that the command names, if they were changed: all else that the hash covers is the same."""
    name = run.cell.id
    if not was.root or was.root != is_.root:
        return ""
    hashes = [at.hashes.get(name, "").partition("-")[0] for at in (was, is_)]
    jobs = [at.campaign.job(run.cell.job) for at in (was, is_)]
    same = all(getattr(jobs[0], part) == getattr(jobs[1], part) for part in ("resume", "output", "mkdir"))
    if not all(hashes) or hashes[0] == hashes[1] or not same or was.campaign.wandb != is_.campaign.wandb:
        return ""
    words = (parts_of_definition(run, was) or {}).get("command", "").split()
    return " ".join(word for word in words if word.endswith(CONFIG_SUFFIXES))


def _strip_campaign_root(text: str, root: str) -> str:
    """A campaign that was moved executes the same."""
    return text.replace(f"{root}/", "").replace(root, ".") if len(root) > 1 else text


def changed_command_words(old: str, new: str) -> tuple[str, str]:
    """Of two commands the words that differ, each with the option before it."""
    a, b = old.split(), new.split()
    blocks = [each for each in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if each[0] != "equal"]
    found: tuple[list[str], list[str]] = ([], [])
    for _, i1, i2, j1, j2 in blocks:
        option = a[i1 - 1 : i1] if i1 and a[i1 - 1].startswith("-") and b[j1 - 1 : j1] == a[i1 - 1 : i1] else []
        found[0].append(" ".join([*option, *a[i1:i2]]))
        found[1].append(" ".join([*option, *b[j1:j2]]))
    return BETWEEN.join(each for each in found[0] if each), BETWEEN.join(each for each in found[1] if each)


def _cut_definition_text(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 4]} ..."


def _seed_rows_of_runs(runs: Mapping[str, DefinedRun]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`new` with its seeds, row by row."""
    rows: dict[str, list[str]] = {}
    for run in runs.values():
        names = run.cell.names
        seed = names.pop("seed", "")
        rows.setdefault(" ".join(names.values()) or run.cell.job, []).extend([seed] if seed else [])
    return tuple((row, tuple(seeds)) for row, seeds in rows.items())
