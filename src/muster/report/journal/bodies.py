"""All blocks of one run, by their kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.report.escape import label, markdown, target
from muster.report.journal.comparison import comparison_body
from muster.report.journal.differences import SHORT, differences_body
from muster.report.journal.evaluation import evaluation_body, training_body
from muster.report.journal.facts import Command, File, Picture, Run
from muster.report.journal.flags import laid_out
from muster.report.journal.gate_words import gate_body
from muster.report.journal.placing import Filling
from muster.report.journal.shown import fenced, table
from muster.report.journal.stage_words import stages_body
from muster.report.journal.warning_words import warnings_body
from muster.report.journal.wording import Wording
from muster.report.record_wording import code, size

HASHED = 16  # digits of a hash in the list of artifacts
MOST_FILES = 200


def filling(run: Run, before: Run | None, against: str, w: Wording) -> Filling:
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
    return Filling(run.name, run.title, {kind: body for kind, body in bodies.items() if body})


def command_body(run: Run, w: Wording) -> str:
    if run.command is None:
        return w("command.unknown", folder=code(run.folder))
    notes = "\n".join(f"- {each}" for each in _origin(run.command, w))
    return f"{fenced(laid_out(run.command.argv), 'sh')}\n\n{notes}"


def _origin(command: Command, w: Wording) -> Iterator[str]:
    where = w("command.cwd", cwd=code(command.cwd)) if command.cwd else ""
    resumed = w("command.resumed") if command.resumed else ""
    source = w(
        "command.attempt" if command.attempt else "command.source", source=code(command.source), n=command.attempt
    )
    yield w.sentences(source, where, resumed)
    if command.script and command.script.sha256:
        parts = {"path": code(command.script.path), "sha": command.script.sha256[:HASHED]}
        newer = w("command.newer") if command.script.newer else ""
        yield w.sentences(w("command.script", **parts), newer)
    if command.commit:
        yield w("command.dirty" if command.dirty else "command.commit", commit=command.commit[:SHORT])


def figures_body(pictures: Sequence[Picture]) -> str:
    return "\n\n".join(_figure(each) for each in pictures)


def _figure(picture: Picture) -> str:
    name = picture.path.rpartition("/")[2].rpartition(".")[0]
    shown = f"![{label(name)}]({target(picture.path)})"
    return f"{shown}\n\n*{markdown(picture.caption)}*" if picture.caption else shown


def artifacts_body(files: Sequence[File], folder: str, w: Wording) -> str:
    rows = [
        [_path(each, w), size(each.size), each.sha256[:HASHED] or w("artifacts.unread")] for each in files[:MOST_FILES]
    ]
    total, count = sum(each.size for each in files), sum(each.count for each in files)
    told = w("artifacts.told", n=count, size=size(total), folder=code(folder))
    more = [w("artifacts.more", n=len(files) - MOST_FILES)] if len(files) > MOST_FILES else []
    return "\n\n".join([told, table([w("head.file"), w("head.size"), "sha256"], rows, words=1), *more])


def _path(each: File, w: Wording) -> str:
    return (
        each.path
        if each.count == 1 and not each.path.endswith("/")
        else w("artifacts.folder", path=each.path, n=each.count)
    )
