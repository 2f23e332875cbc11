"""`muster adopt`: which run folders may be adopted, and why the others are refused.

Nothing is believed for its name alone: a folder is adopted only if it belongs to exactly one cell and the job's own
proof holds for it. What is not adopted is listed with the reason.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from muster.app.adopt.match_runs import MatchRefusal, RunCandidate, RunSearch
from muster.engine.ports.probe import ProofReader
from muster.files.bounded_walk import glob_paths, list_files_below
from muster.files.json_codec import outcome_as_data
from muster.model.attempt import UNKNOWN_EXIT, Attempt, CellRecord, Outcome
from muster.model.attempt_snapshot import ExitRecord, ProofReading
from muster.model.campaign import Job, Proof, StepProof
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.verdict import Evidence, VerdictState
from muster.readers.proof import order_of_found_run
from muster.readers.run_times import RunTimes, times_of_run_folder

_EARLY, _FINAL = 0.10, 0.90  # a checkpoint before the first is hardly trained, one after the second is the last
_JUST_NOW_S = 60.0
SLACK_S = 2.0  # file times are coarse
_USUAL_CHECKPOINTS = ("checkpoint*", "*.ckpt", "*.pt", "*.pth", "checkpoints/*")


class MatchedRun(NamedTuple):
    cell: str
    path: str
    how: str


class ProvedRun(NamedTuple):
    cell: str
    outcome: Outcome
    evidence: tuple[Evidence, ...]
    attempt: int
    hash: str
    retry_cause: str | None


class RefusedRun(NamedTuple):
    what: str  # a path, a pattern or a row
    reason: str
    cell: str = ""  # that the run belongs to
    started: float | None = None  # by its files; None: what it took is not known, or is accounted for elsewhere
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Adoption:
    matched: tuple[MatchedRun, ...] = ()
    already: tuple[MatchedRun, ...] = ()  # in the record since an earlier adoption
    proved: tuple[ProvedRun, ...] = ()
    refused: tuple[RefusedRun, ...] = ()
    undeclared: tuple[str, ...] = ()  # folders that are named like outputs, with values that nobody declared


WhyStillRunning = Callable[[str], str]  # why a folder's run is not over; empty: nobody writes there


@dataclass(frozen=True, slots=True)
class _CandidateReading:
    """A matched folder after its proof was read."""

    path: str
    how: str
    candidate: RunCandidate
    times: RunTimes | None
    reading: ProofReading


def find_adoptable_runs(
    state: CampaignState,
    folder: Path,
    patterns: Sequence[str],
    status_tsv: Path | None,
    proofs: ProofReader,
    job: str | None = None,
    lives: WhyStillRunning = lambda _: "",
    *,
    blind: bool = True,
) -> Adoption:
    """What there is to adopt, for all jobs or for one. `folder` is the campaign's; nothing is changed.

    `blind`: `lives` may miss a writer, because it can't look into all processes.
    """
    search = _collect_candidates(RunSearch(state, folder, job), patterns, status_tsv)
    matched: dict[str, list[tuple[RunCandidate, str]]] = {}
    refusals: list[MatchRefusal] = search.refused
    for candidate in search.found.values():
        match = search.cell_of(candidate)
        if isinstance(match, MatchRefusal):
            refusals.append(match)
        else:
            matched.setdefault(match[0], []).append((candidate, match[1]))
    pairs = [MatchedRun(cell, run.path, how) for cell, runs in matched.items() for run, how in runs]
    already = [pair for pair in pairs if _is_adopted_already(state.cells[pair.cell], pair.path)]
    for pair in already:
        matched[pair.cell] = [each for each in matched[pair.cell] if each[0].path != pair.path]
    proved: list[ProvedRun] = []
    for cell in [cell for cell in state.cells if cell in matched]:
        found, refused = _choose_run_of_cell(state, state.cells[cell], matched[cell], proofs, lives, blind=blind)
        proved += found
        refusals += refused
    undeclared = () if patterns or status_tsv else tuple(search.undeclared())
    return Adoption(tuple(pairs), tuple(already), tuple(proved), tuple(map(refused_run_of, refusals)), undeclared)


def refused_run_of(each: MatchRefusal) -> RefusedRun:
    if each.times is None:
        return RefusedRun(each.what, each.reason, each.cell)
    return RefusedRun(each.what, each.reason, each.cell, each.times.started, each.times.ended)


def unrecorded_spend(adoption: Adoption, state: CampaignState) -> list[RefusedRun]:
    """Refused runs whose time is known and not written down yet."""
    known = {(run.path, run.started, run.ended, run.reason) for run in state.refused}
    timed = [each for each in adoption.refused if each.cell and each.started is not None and each.ended is not None]
    return [each for each in timed if (each.what, each.started, each.ended, each.reason) not in known]


def refusal_decisions(refused: Sequence[RefusedRun], who: str, at: str, boot: float) -> list[Decision]:
    return [
        Decision(
            kind="refuse",
            who=who,
            reason=each.reason,
            cell=each.cell,
            at=at,
            boot=boot,
            data={"path": each.what, "started": each.started, "ended": each.ended},
        )
        for each in refused
    ]


def adoption_decisions(adoption: Adoption, who: str, at: str, boot: float, boot_id: str) -> list[Decision]:
    return [
        Decision(
            kind="adopt",
            who=who,
            reason=proved.outcome.reason,
            cell=proved.cell,
            attempt=proved.attempt,
            at=at,
            boot=boot,
            data={
                "token": secrets.token_hex(16),
                "slots": [],
                "hash": proved.hash,
                "boot_id": boot_id,
                "retry_cause": proved.retry_cause,
                "outcome": outcome_as_data(proved.outcome),
                "path": proved.outcome.output,
            },
        )
        for proved in adoption.proved
    ]


def _collect_candidates(search: RunSearch, patterns: Sequence[str], status_tsv: Path | None) -> RunSearch:
    for pattern in patterns:
        search.add_pattern(pattern)
    if status_tsv:
        search.add_table(status_tsv)
    if not patterns and not status_tsv:
        search.add_outputs()
    return search


def _choose_run_of_cell(
    state: CampaignState,
    record: CellRecord,
    found: list[tuple[RunCandidate, str]],
    proofs: ProofReader,
    lives: WhyStillRunning,
    *,
    blind: bool,
) -> tuple[list[ProvedRun], list[MatchRefusal]]:
    """Of all folders that fit one cell the newest proven one; the others with the reason why not."""
    closed = _why_cell_is_closed(record)
    if closed:
        return [], [MatchRefusal(candidate.path, f"{record.cell.id} {closed}") for candidate, _ in found]
    job = state.job(record.cell.job)
    living = [MatchRefusal(each.path, alive) for each, _ in found if (alive := lives(each.path))]
    found = [(each, how) for each, how in found if each.path not in {one.what for one in living}]
    aside = [MatchRefusal(each.path, why) for each, _ in found if (why := _why_superseded(record, each.path))]
    runs = [
        _read_candidate(job, record, each, how, proofs) for each, how in found if not _why_superseded(record, each.path)
    ]
    runs.sort(key=lambda run: (run.times.ended if run.times else 0.0, run.path), reverse=True)
    taken = next((run for run in runs if run.reading.holds and run.reading.recorded in (None, 0)), None)
    refused = [*living, *aside, *(_refusal_of_run(run, taken, record) for run in runs if run is not taken)]
    return ([_proved_run(job, record, taken, blind=blind)] if taken else []), refused


def _refusal_of_run(run: _CandidateReading, taken: _CandidateReading | None, record: CellRecord) -> MatchRefusal:
    """What it took is known spend, unless an attempt of this campaign made it: that is in the ledger already."""
    own = any(_attempt_made_run(attempt, run) for attempt in record.attempts)
    return MatchRefusal(run.path, _why_run_is_refused(run, taken), record.cell.id, None if own else run.times)


def _attempt_made_run(attempt: Attempt, run: _CandidateReading) -> bool:
    if attempt.adopted or _is_output_of_attempt(attempt, run.path):
        return _is_output_of_attempt(attempt, run.path)
    outcome = attempt.outcome
    began, ended = outcome.started if outcome else None, outcome.ended if outcome else None
    if run.times is None or began is None or ended is None:
        return outcome is None
    return began - SLACK_S <= run.times.started <= ended + SLACK_S


def _is_adopted_already(record: CellRecord, path: str) -> bool:
    """Whether this very folder was adopted before."""
    done = record.completed
    return bool(done and done.adopted and _is_output_of_attempt(done, path))


def _is_output_of_attempt(attempt: Attempt, path: str) -> bool:
    output = attempt.outcome.output if attempt.outcome else None
    return output is not None and os.path.realpath(output) == os.path.realpath(path)


def _why_superseded(record: CellRecord, path: str) -> str | None:
    """Why a folder is not taken in again that a redo has put aside."""
    old = next(
        (each for each in record.attempts if each.superseded is not None and _is_output_of_attempt(each, path)), None
    )
    return f"{record.cell.id} is being redone and this is its attempt {old.n}: {old.superseded}" if old else None


def _why_cell_is_closed(record: CellRecord) -> str | None:
    """Why a cell takes no run in."""
    if record.completed:
        return f"is DONE already (attempt {record.completed.n})"
    if record.open:
        return f"is running (attempt {record.open.n}): stop it first"
    if record.given_up is not None:
        return f"is given up: {record.given_up}"
    return None


def _read_candidate(
    job: Job, record: CellRecord, candidate: RunCandidate, how: str, proofs: ProofReader
) -> _CandidateReading:
    path, row = candidate.path, candidate.row
    times = times_of_run_folder(Path(path), row.window if row else None)
    if times is None:
        nothing = Evidence("output", "proof", "the folder has no file", "fails")
        return _CandidateReading(path, how, candidate, None, ProofReading(False, (nothing,)))
    asked = _provable_job(job, vouched=bool(row and row.status))
    if asked is None:
        says = "no proof is declared, the exit code is not known, and no status table vouches for it"
        return _CandidateReading(
            path, how, candidate, times, ProofReading(None, (Evidence("proof", "proof", says, "can't be read"),))
        )
    window = None if times.lost else ExitRecord(None, None, times.ended, 0.0, times.duration_s)
    return _CandidateReading(
        path, how, candidate, times, proofs.read(asked, record.cell, order_of_found_run(record, path), window)
    )


def _provable_job(job: Job, *, vouched: bool) -> Job | None:
    """The job with a proof that can stand in for the exit code, which nobody wrote down; None: there is none."""
    if job.asks_proof or vouched:
        return job
    if job.steps is None or not any(source.step or source.kind == "stdout" for source in job.progress):
        return None
    return replace(job, proof=Proof(step=StepProof("{steps}", within=0.02)))


def _why_run_is_refused(run: _CandidateReading, taken: _CandidateReading | None) -> str:
    if run.reading.recorded:
        return f"it ended badly: its W&B record ends with exit code {run.reading.recorded}"
    if run.reading.holds:
        return f"superseded by {Path(taken.path).name}, which is newer" if taken else "superseded"
    says = "can't be read" if run.reading.holds is None else "fails"
    readings = "; ".join(each.reading for each in run.reading.evidence if each.says == says)
    return f"proof {says}: {readings}"


def _proved_run(job: Job, record: CellRecord, run: _CandidateReading, *, blind: bool) -> ProvedRun:
    times = run.times
    last = record.last
    match = Evidence("match", "decision", f"{run.path}: {run.how}", "belongs to it")
    outcome = Outcome(
        verdict=VerdictState.DONE,
        reason=f"adopted: {run.how}; {_describe_proof(run)}",
        exit_code=run.reading.recorded,
        note="; ".join(_adoption_notes(job, run, blind=blind)),
        started=times.started if times else None,
        ended=times.ended if times else None,
        duration_s=times.duration_s if times else None,
        output=run.path,
        evidence=(match, *run.reading.evidence),
        results=run.reading.results,
    )
    cause = None
    if last is not None:
        ended = (last.outcome.cause or last.outcome.verdict) if last.outcome else "open"
        cause = f"adopted after attempt {last.n} ended: {ended}"
    return ProvedRun(record.cell.id, outcome, outcome.evidence, len(record.attempts) + 1, record.hash, cause)


def _describe_proof(run: _CandidateReading) -> str:
    row = run.candidate.row
    if any(each.signal != "proof" for each in run.reading.evidence):
        return "its proof holds"
    return f"no proof is declared, its status is '{row.status}'" if row else "no proof is declared"


def _adoption_notes(job: Job, run: _CandidateReading, *, blind: bool) -> list[str]:
    notes = [UNKNOWN_EXIT] if run.reading.recorded is None else []
    if run.times is None:
        return notes
    if blind and 0 <= time.time() - run.times.ended < _JUST_NOW_S:
        notes.append("its files changed within the last minute: it may still be running")
    if run.times.lost:
        notes.append("its files' times are those of a copy: when the checkpoint was saved can't be told")
    elif job.proof.checkpoint is None or job.proof.checkpoint.saved_after <= 0:
        notes += _note_early_checkpoint(job, run, run.times)
    return notes


def _note_early_checkpoint(job: Job, run: _CandidateReading, times: RunTimes) -> list[str]:
    """Nobody asked when the checkpoint was saved; the reference story says why somebody should."""
    declared = [source.path for source in job.progress if source.kind == "checkpoint"]
    if job.proof.checkpoint:
        declared.append(job.proof.checkpoint.path)
    saved = [
        _newest_file_time(path)
        for pattern in declared or _USUAL_CHECKPOINTS
        for path in _paths_in_run(run.path, pattern)
    ]
    if not saved or times.duration_s <= 0:
        return []
    share = min(1.0, max(0.0, (max(saved) - times.started) / times.duration_s))
    if share >= _FINAL:
        return []
    guess = "probably untrained weights" if share < _EARLY else "not the final weights"
    return [f"the checkpoint was saved at {share * 100:.0f} % of the run: {guess}"]


def _paths_in_run(run: str, pattern: str) -> list[Path]:
    if not pattern or pattern.startswith("/"):
        return []
    return [Path(run, each) for each in glob_paths(pattern, run)]


def _newest_file_time(path: Path) -> float:
    files = [each for each in list_files_below(path) if each.is_file()] if path.is_dir() else [path]
    return max((each.stat().st_mtime for each in files if each.exists()), default=0.0)
