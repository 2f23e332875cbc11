"""The generated blocks of one run: its command, what changed against the last version, evaluations better or worse
than the noise, figures, artifacts.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.app.facts.report_analysis import choose_column_format
from muster.app.journal.generated_blocks import RunBlocks
from muster.app.journal.journal_tables import (
    evaluation_body,
    fenced_code_block,
    journal_markdown_table,
    training_body,
)
from muster.app.journal.recorded_run import (
    ArtifactFile,
    EvaluationRows,
    RecordedGateTrace,
    RecordedRun,
    RunCommand,
    RunPicture,
    RunScript,
    changed_settings,
    flatten_settings,
    lay_out_command,
    parse_command_flags,
)
from muster.app.journal.stage_blocks import gate_body, stages_body, warnings_body
from muster.rules.metric_summary import better_direction_of_key
from muster.stats.samples import DifferenceOfMeans, Sample, difference_of_means, holm_thresholds
from muster.text.catalogue import Catalogue
from muster.text.escape_markup import escape_link_label, escape_link_target, escape_markdown
from muster.text.number_format import ColumnFormat, format_file_size
from muster.text.secret_masking import HIDDEN_VALUE, should_hide_value
from muster.text.sentences import format_inline_code

RECENT_EVALUATIONS = 4  # evaluations at the end of each run
LEAST_EVALUATIONS = 3  # with fewer there is no spread to judge by
ALPHA = 0.05
MOST_METRICS = 16
_HIGHER_IS_BETTER = ("survival", "alive")
# how an evaluation was made, not what came of it
_SETTING_KEYS = re.compile(r"(?:^|_)(?:episodes?|seeds?|fish|envs?|time|timestamp|seconds|phase|probe)(?:$|_)", re.I)


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    key: str
    before: Sample
    now: Sample
    difference: DifferenceOfMeans
    reading: str  # better | worse | higher | lower | noise | few | same


def comparison_body(now: RecordedRun, before: RecordedRun, against: str, w: Catalogue) -> str:
    if now.evaluations is None or before.evaluations is None:
        return w("comparison.nothing", last=against)
    rows = compare_evaluations(now.evaluations, before.evaluations, directions_from_gates([*now.gates, *before.gates]))
    if not rows:
        return w("comparison.no_common", last=against)
    forms = {each.key: choose_column_format([each.before, each.now]) for each in rows}
    shown = [_comparison_row(each, forms[each.key], w) for each in rows[:MOST_METRICS]]
    head = [w("head.metric"), against, w("head.this"), w("head.difference"), w("head.reading")]
    notes = [f"- {each}" for each in _comparison_notes(rows, before, against, w)]
    return "\n\n".join([_comparison_summary(rows, w), journal_markdown_table(head, shown, words=1), "\n".join(notes)])


def compare_evaluations(now: EvaluationRows, before: EvaluationRows, better: Mapping[str, str]) -> list[ComparedMetric]:
    """Keys that both have, by their last few evaluations."""
    keys = [key for key in now.keys if key in before.keys and not _SETTING_KEYS.search(key)]
    pairs = [(key, _recent_sample(before, key), _recent_sample(now, key)) for key in keys]
    found = [(key, old, new, difference_of_means(new, old)) for key, old, new in pairs if old.n and new.n]
    judged = {key: each.p for key, old, new, each in found if min(old.n, new.n) >= LEAST_EVALUATIONS}
    rejected = {key: told for key, (_, told) in holm_thresholds(judged, ALPHA).items()}
    return [
        ComparedMetric(
            key,
            old,
            new,
            each,
            _reading_of_difference(each, old, new, rejected.get(key, False), better.get(key) or _usual_direction(key)),
        )
        for key, old, new, each in found
    ]


def _recent_sample(found: EvaluationRows, key: str) -> Sample:
    values = [(at, value) for at, value in found.column(key) if math.isfinite(value)][-RECENT_EVALUATIONS:]
    return Sample("", "", key, {f"{place}:{at}": value for place, (at, value) in enumerate(values)})


def _reading_of_difference(
    each: DifferenceOfMeans, old: Sample, new: Sample, rejected: bool, better: str | None
) -> str:
    if each.estimate == 0 and not each.se:
        return "same"
    if min(old.n, new.n) < LEAST_EVALUATIONS:
        return "few"
    if not (rejected or _differ_without_spread(each, old, new)):
        return "noise"
    up = each.estimate > 0
    if better is None:
        return "higher" if up else "lower"
    return "better" if up == (better == "higher") else "worse"


def _differ_without_spread(each: DifferenceOfMeans, old: Sample, new: Sample) -> bool:
    """Neither has any spread, and they differ."""
    return each.p is None and old.sd == 0 and new.sd == 0 and each.estimate != 0


def _usual_direction(key: str) -> str | None:
    return "higher" if any(word in key.lower() for word in _HIGHER_IS_BETTER) else better_direction_of_key(key)


def directions_from_gates(gates: Sequence[RecordedGateTrace]) -> dict[str, str]:
    """What is better, as the criteria of a gate tell it: a success at least so high, a failure below that."""
    found: dict[str, str] = {}
    for trace in gates:
        for row in trace.rows[:1]:
            for each in row.get("criteria") or ():
                if isinstance(each, Mapping) and each.get("bound") in ("min", "above", "max", "below"):
                    up = (each["bound"] in ("min", "above")) == (each.get("side") == "success")
                    found.setdefault(str(each.get("key")), "higher" if up else "lower")
    return found


def _comparison_row(each: ComparedMetric, form: ColumnFormat, w: Catalogue) -> list[str]:
    interval = each.difference.interval()
    told = form.signed(each.difference.estimate)
    if interval and min(each.before.n, each.now.n) >= LEAST_EVALUATIONS:
        told += f" {form.interval(interval)}"
    return [
        each.key,
        _format_sample_mean(each.before, form),
        _format_sample_mean(each.now, form),
        told,
        w(f"reading.{each.reading}"),
    ]


def _format_sample_mean(sample: Sample, form: ColumnFormat) -> str:
    spread = f" ± {form.spread(sample.sd)}" if sample.sd is not None and sample.n >= LEAST_EVALUATIONS else ""
    return f"{form(sample.mean)}{spread}"


def _comparison_summary(rows: Sequence[ComparedMetric], w: Catalogue) -> str:
    kinds = ("better", "worse", "higher", "lower", "noise", "same", "few")
    by = {kind: [format_inline_code(each.key) for each in rows if each.reading == kind] for kind in kinds}
    told = [w(f"comparison.{kind}", keys=w.list(keys)) for kind, keys in by.items() if keys]
    return w("semicolon").join(told) + w("stop")


def _comparison_notes(rows: Sequence[ComparedMetric], before: RecordedRun, against: str, w: Catalogue) -> Iterator[str]:
    used = [each.before.n for each in rows] + [each.now.n for each in rows]
    yield w("comparison.how", n=max(used), m=sum(min(each.before.n, each.now.n) >= LEAST_EVALUATIONS for each in rows))
    yield w("comparison.limits")
    if any(each.reading in ("higher", "lower") for each in rows):
        yield w("comparison.direction")
    if len(rows) > MOST_METRICS:
        yield w("comparison.cut", n=len(rows) - MOST_METRICS)
    if before.evaluations:
        source = (
            w("comparison.text", last=against) if not before.folder else format_inline_code(before.evaluations.source)
        )
        yield w("comparison.source", last=against, source=source, n=len(before.evaluations.rows))


SHORT_HASH = 12  # digits of a hash
MOST_ROWS = 80
LONGEST_SETTING = 90  # characters of a value
LEAD_LETTERS = 12  # letters before the first one that differs
_NAMES = re.compile(r"\s*(?:async )?(?:def|class) (\w+)")
MOST_LINES = 20_000  # of a script that is compared line by line


def differences_body(now: RecordedRun, before: RecordedRun, against: str, w: Catalogue) -> str:
    parts = [w("differences.against", last=against, run=format_inline_code(before.title))]
    parts += _flag_differences(now.command, before.command, w)
    parts += _gate_differences(now, before, w)
    parts += [f"- {each}" for each in _script_differences(now.command, before.command, w)]
    return "\n\n".join(parts)


def _flag_differences(now: RunCommand | None, before: RunCommand | None, w: Catalogue) -> Iterator[str]:
    if now is None or before is None:
        yield f"- {w('differences.no_command')}"
        return
    rows = changed_settings(_flags_without_own_folder(before), _flags_without_own_folder(now))
    yield _differences_table("differences.flag", rows, w) if rows else f"- {w('differences.same_flags')}"


def _flags_without_own_folder(command: RunCommand) -> dict[str, str]:
    """What names the run's own folder is no difference."""
    own = command.out
    return {
        name: value.replace(own, "{out}") if own else value for name, value in parse_command_flags(command.argv).items()
    }


def _gate_differences(now: RecordedRun, before: RecordedRun, w: Catalogue) -> Iterator[str]:
    old = {gate.name: flatten_settings(gate.settings) for gate in before.gates if gate.settings}
    for gate in now.gates:
        if gate.name not in old or not gate.settings:
            continue
        rows = changed_settings(old[gate.name], flatten_settings(gate.settings))
        name = format_inline_code(gate.name)
        yield (
            _differences_table("differences.setting", rows, w, gate=name)
            if rows
            else f"- {w('differences.same_gate', gate=name)}"
        )


def _differences_table(
    key: str, rows: Sequence[tuple[str, str | None, str | None]], w: Catalogue, **parts: object
) -> str:
    shown = [
        [
            name,
            *(
                _setting_as_shown(HIDDEN_VALUE if each and should_hide_value(name, each) else each, w)
                for each in _cut_common_beginning(old, new)
            ),
        ]
        for name, old, new in rows[:MOST_ROWS]
    ]
    more = [w("differences.more", n=len(rows) - MOST_ROWS)] if len(rows) > MOST_ROWS else []
    head = [w("head.flag"), w("head.before"), w("head.now")]
    return "\n\n".join([w(key, n=len(rows), **parts), journal_markdown_table(head, shown, left=3), *more])


def _cut_common_beginning(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Of long texts that begin alike, what follows after that: cut at their end they would look the same."""
    if not old or not new or max(len(old), len(new)) <= LONGEST_SETTING:
        return old, new
    alike = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    first = alike - LEAD_LETTERS
    return (old, new) if first <= 0 else (f"…{old[first:]}", f"…{new[first:]}")


def _setting_as_shown(value: str | None, w: Catalogue) -> str:
    if value is None:
        return w("differences.absent")
    if not value:
        return w("differences.bare")
    return value if len(value) <= LONGEST_SETTING else value[: LONGEST_SETTING - 1] + "…"


def _script_differences(now: RunCommand | None, before: RunCommand | None, w: Catalogue) -> Iterator[str]:
    mine, old = (each.script if each else None for each in (now, before))
    if mine is None or old is None:
        return
    known = {"now": format_inline_code(mine.path), "before": format_inline_code(old.path)}
    if mine.sha256 and mine.sha256 == old.sha256:
        yield w("differences.same_script", **known)
        return
    if not (mine.sha256 and old.sha256):
        yield w("differences.unknown_script", **known)
        return
    yield w("differences.script", **known, sha=mine.sha256[:SHORT_HASH], old=old.sha256[:SHORT_HASH])
    yield _changed_lines_sentence(mine, old, w)


def _changed_lines_sentence(now: RunScript, before: RunScript, w: Catalogue) -> str:
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
        names += _enclosing_functions(new, c, max(c + 1, d))
    where = (
        w("differences.where", names=w.list([format_inline_code(each) for each in dict.fromkeys(names)], 8))
        if names
        else ""
    )
    return w.sentences(w("differences.lines", added=added, removed=removed), where)


def _enclosing_functions(lines: Sequence[str], first: int, end: int) -> list[str]:
    """The functions that these lines are in, or begin."""
    found = [name[1] for line in lines[first:end] if (name := _NAMES.match(line))]
    for at in range(min(first, len(lines) - 1), -1, -1):
        if name := _NAMES.match(lines[at]):
            return [name[1], *(each for each in found if each != name[1])]
        if lines[at].strip() and not lines[at][:1].isspace() and at != first:
            break
    return found


HASH_DIGITS = 16  # digits of a hash in the list of artifacts
MOST_FILES = 200


def blocks_of_run(run: RecordedRun, before: RecordedRun | None, against: str, w: Catalogue) -> RunBlocks:
    """`before`: the run of the last version that it is compared with, `against` that version's name."""
    bodies = {
        "command": command_body(run, w),
        "training": training_body(run.training, w) if run.training else "",
        "evaluation": evaluation_body(run.evaluations, w) if run.evaluations else "",
        "gate": "\n\n".join(gate_body(each, w) for each in run.gates),
        "stages": stages_body(run, w),
        "warnings": warnings_body(run, w),
        "figures": figures_body(run.pictures),
        "artifacts": artifacts_body(run.files, run.folder, w) if run.files else "",
    }
    if before:
        bodies["differences"] = differences_body(run, before, against, w)
        bodies["comparison"] = comparison_body(run, before, against, w)
    return RunBlocks(run.name, run.title, {kind: body for kind, body in bodies.items() if body})


def command_body(run: RecordedRun, w: Catalogue) -> str:
    if run.command is None:
        return w("command.unknown", folder=format_inline_code(run.folder))
    notes = "\n".join(f"- {each}" for each in _origin_of_command(run.command, w))
    return f"{fenced_code_block(lay_out_command(run.command.argv), 'sh')}\n\n{notes}"


def _origin_of_command(command: RunCommand, w: Catalogue) -> Iterator[str]:
    where = w("command.cwd", cwd=format_inline_code(command.cwd)) if command.cwd else ""
    resumed = w("command.resumed") if command.resumed else ""
    source = w(
        "command.attempt" if command.attempt else "command.source",
        source=format_inline_code(command.source),
        n=command.attempt,
    )
    yield w.sentences(source, where, resumed)
    if command.script and command.script.sha256:
        parts = {"path": format_inline_code(command.script.path), "sha": command.script.sha256[:HASH_DIGITS]}
        newer = w("command.newer") if command.script.newer else ""
        yield w.sentences(w("command.script", **parts), newer)
    if command.commit:
        yield w("command.dirty" if command.dirty else "command.commit", commit=command.commit[:SHORT_HASH])


def figures_body(pictures: Sequence[RunPicture]) -> str:
    return "\n\n".join(_picture_with_caption(each) for each in pictures)


def _picture_with_caption(picture: RunPicture) -> str:
    name = picture.path.rpartition("/")[2].rpartition(".")[0]
    shown = f"![{escape_link_label(name)}]({escape_link_target(picture.path)})"
    return f"{shown}\n\n*{escape_markdown(picture.caption)}*" if picture.caption else shown


def artifacts_body(files: Sequence[ArtifactFile], folder: str, w: Catalogue) -> str:
    rows = [
        [_artifact_path_text(each, w), format_file_size(each.size), each.sha256[:HASH_DIGITS] or w("artifacts.unread")]
        for each in files[:MOST_FILES]
    ]
    total, count = sum(each.size for each in files), sum(each.count for each in files)
    told = w("artifacts.told", n=count, size=format_file_size(total), folder=format_inline_code(folder))
    more = [w("artifacts.more", n=len(files) - MOST_FILES)] if len(files) > MOST_FILES else []
    return "\n\n".join([told, journal_markdown_table([w("head.file"), w("head.size"), "sha256"], rows, words=1), *more])


def _artifact_path_text(each: ArtifactFile, w: Catalogue) -> str:
    return (
        each.path
        if each.count == 1 and not each.path.endswith("/")
        else w("artifacts.folder", path=each.path, n=each.count)
    )
