"""The proof: what turns exit 0 into DONE. Each check leaves one piece of evidence in plain words, with its numbers."""

# ruff: noqa: PTH118, PTH120
# Paths are texts here: globs are no paths, and this runs after every exit.

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.files.safe_open import is_permanent_read_error
from muster.model.attempt import CellRecord, Order
from muster.model.attempt_snapshot import ExitRecord, ProofReading
from muster.model.campaign import CheckpointProof, DeclaredProgress, DeclaredResult, Job, StepProof
from muster.model.cell import Cell, parse_value_names
from muster.model.verdict import Evidence
from muster.readers.checkpoints.checkpoint_steps import OTHER_UNIT_FACTOR, CheckpointStep, step_of_checkpoint
from muster.readers.checkpoints.whole_checkpoints import CheckpointReading, check_checkpoint, checkpoint_saved_at
from muster.readers.discovery.run_arguments import action_repeat_of_run
from muster.readers.log_rows import LogPiece, pieces_of_log, step_in_checkpoint_name
from muster.readers.output_files import (
    FittingOutputs,
    came_at,
    fitting_outputs,
    folder_of_output,
    is_glob_pattern,
    newest_paths_first,
    path_has_content,
    path_time,
    paths_fitting,
    why_glob_is_unreadable,
)
from muster.readers.proof_steps import (
    RECORD_FILE_KINDS,
    ProofStep,
    proof_step_text,
    rank_of_step,
    read_newest_step,
)
from muster.readers.results import LOG_KINDS, NoResult, has_printed_match, read_cell_result
from muster.readers.run_times import RunWindow, window_of_attempt
from muster.text.command_template import render_template

HOLDS, FAILS, UNREAD = "holds", "fails", "can't be read"
ABSTAINS = "abstains"  # says something worth knowing and decides nothing
_NO_PROOF = (Evidence("proof", "proof", "no proof declared: exit 0 is enough", HOLDS),)
STEP_FILE_KINDS = ("jsonl", "csv", "stdout")
_ROUNDED_SCALE = 0.01  # `scale: 0.33` is a third
_MOST_MATCHES = 16  # files of one glob that are opened: the newest ones


class FileProofReader:
    """Reads the files that a run left behind. `before`: the orders of the attempts that one goes on from."""

    def __init__(self, before: Callable[[Order], Sequence[Order]] = lambda _: ()) -> None:
        self._before = before

    def read(self, job: Job, cell: Cell, order: Order, exit: ExitRecord | None) -> ProofReading:  # noqa: A002
        unknown = exit is None or (exit.code is None and exit.signal is None)
        lost = unknown and bool(_sources_with_exit(job))
        if not job.asks_proof and not is_glob_pattern(order.output) and not lost:
            return ProofReading(True, _NO_PROOF, order.output)  # the hot path: not even a stat
        window = window_of_attempt(order, exit)
        fits = fitting_outputs(order, window)
        before = (
            readings_of_earlier_attempts(job, cell, self._before(order)) if order.resumed_from and job.results else ()
        )
        well = exit is not None and exit.code == 0
        reading = _AttemptReading(job, order, placeholder_values_of_cell(job, cell, order), fits, window, before, well)
        found = reading.read() if job.asks_proof else ProofReading(True, _NO_PROOF, reading.output)
        return replace(found, recorded=reading.recorded()) if lost else found

    def progress(self, job: Job, cell: Cell, order: Order) -> ProofReading:
        """How far a living run is: its newest step, and where it writes. Proves nothing."""
        reading = _AttemptReading(
            job, order, placeholder_values_of_cell(job, cell, order), fitting_outputs(order, None), None
        )
        return ProofReading(None, (), reading.output, reading.newest_step())


@dataclass(frozen=True, slots=True)
class ResultPlaces:
    """The files that results and the proof are read from."""

    results: Mapping[str, str]
    checkpoint: str | None
    window: RunWindow | None
    last_step: float | None  # when a file with steps was last written
    logs: tuple[str, ...] = ()  # that learning curves are read from
    pieces: Mapping[str, tuple[LogPiece, ...]] = field(default_factory=dict)  # result -> its log in each attempt
    before: tuple[str, ...] = ()  # files of earlier attempts that numbers are read from


def find_result_places(
    job: Job, cell: Cell, order: Order, exit_: ExitRecord | None, before: Sequence[Order] = ()
) -> ResultPlaces:
    window = window_of_attempt(order, exit_)
    earlier = readings_of_earlier_attempts(job, cell, before)
    return _AttemptReading(
        job, order, placeholder_values_of_cell(job, cell, order), fitting_outputs(order, window), window, earlier
    ).places()


def readings_of_earlier_attempts(job: Job, cell: Cell, orders: Sequence[Order]) -> tuple[_AttemptReading, ...]:
    """Of the attempts that one goes on from: where they wrote."""
    return tuple(
        _AttemptReading(job, order, placeholder_values_of_cell(job, cell, order), fitting_outputs(order, None), None)
        for order in orders
    )


def step_key_of_result(job: Job, result: DeclaredResult) -> str | None:
    """The key that counts the steps in the file of a result, where `progress:` names one."""
    same = [each.step for each in job.progress if (each.kind, each.path) == (result.kind, result.path)]
    return next(filter(None, same), None)


def absolute_pattern(job: Job, cell: Cell, order: Order, path: str) -> str | None:
    """A path of the campaign file as an absolute glob; None: it asks for what has no value here."""
    try:
        return _AttemptReading(
            job, order, placeholder_values_of_cell(job, cell, order), fitting_outputs(order, None), None
        ).path(path)
    except KeyError:
        return None


def _sources_with_exit(job: Job) -> list[DeclaredProgress]:
    """Sources in which a run that ends writes down how."""
    return [each for each in job.progress if each.kind == "wandb"]


def placeholder_values_of_cell(job: Job, cell: Cell, order: Order) -> dict[str, str]:
    """The placeholders that a path or a number may hold."""
    values = {"cell": order.cell, "attempt": str(order.n), "out": order.out}
    if job.steps is not None:
        values["steps"] = str(job.steps)
    for (axis, value), name in zip(cell.values, parse_value_names(order.cell, cell), strict=True):
        values[axis] = name
        values[f"{axis}.args"] = value.args
    return values


@dataclass(frozen=True, slots=True)
class _AttemptReading:
    job: Job
    order: Order
    values: Mapping[str, str]
    fits: FittingOutputs
    window: RunWindow | None
    before: tuple[_AttemptReading, ...] = ()  # of the attempts that it goes on from, the first one first
    ended_well: bool = True  # its exit is known to be 0

    @property
    def output(self) -> str | None:
        return next(iter(self.fits.paths), None)

    @property
    def base(self) -> str:
        """What paths are relative to; where no output was found, a folder that does not exist."""
        return folder_of_output(self.output or self.order.output)

    @property
    def step(self) -> ProofStep | None:
        return max(self._steps(), key=rank_of_step, default=None)

    def newest_step(self) -> float | None:
        """Of a living run: a checkpoint may hold a later step than a log that lags, or the only one there is."""
        logged = self.step.value if self.step else None
        saves = [each.path for each in self.job.progress if each.kind == "checkpoint"]
        held = [
            found
            for path in self._existing(saves)
            if (found := step_of_checkpoint(path)) and found.share(self.job.steps)
        ]
        return max([*(each.value for each in held), *([] if logged is None else [logged])], default=None)

    def recorded(self) -> int | None:
        """The exit code that the run itself wrote down, where its log has a place for it."""
        read = (self._written(each.kind, each.path, each.step, each.scale) for each in _sources_with_exit(self.job))
        return next((each.ended for each in read if each.ended is not None), None)

    def read(self) -> ProofReading:
        proof = self.job.proof
        step = self.step
        evidence = self._found()
        if proof.step:
            evidence.append(self._judge_step(proof.step, step))
        if proof.checkpoint:
            evidence += self._judge_checkpoint(proof.checkpoint)
        evidence += (self._judge_files(pattern) for pattern in proof.files)
        results: dict[str, float] = {}
        evidence += (self._judge_result(result, results) for result in self.job.results)
        says = {each.says for each in evidence}
        holds = False if FAILS in says else None if UNREAD in says else True
        return ProofReading(holds, tuple(evidence), self.output, step.value if step else None, results)

    def _found(self) -> list[Evidence]:
        """Nothing to say about one that is there; but there may be none, or more than one."""
        pattern = self.order.output
        if not self.fits.paths:
            trouble = why_glob_is_unreadable(pattern)
            missing = f"no folder fits {pattern} since the start" if is_glob_pattern(pattern) else f"no {pattern}"
            return [_proof_evidence("output", trouble or missing, UNREAD if trouble else FAILS)]
        if len(self.fits.paths) == 1:
            return []
        return [
            _proof_evidence("output", f"{len(self.fits.paths)} folders fit {pattern}; took {self.output}", ABSTAINS)
        ]

    # -- steps

    def _steps(self) -> list[ProofStep]:
        found: list[ProofStep] = []
        for source in self.job.progress:
            if source.kind == "stdout":
                found.append(self._logged(source.path, source.scale))
            elif source.kind in RECORD_FILE_KINDS or (source.kind in STEP_FILE_KINDS and source.step):
                found.append(self._written(source.kind, source.path, source.step, source.scale))
        return found

    def _logged(self, regex: str, scale: float) -> ProofStep:
        folder = os.path.dirname(self.order.out)
        for name in ("stdout.log", "stderr.log"):  # Python's logging and progress bars go to stderr
            step = read_newest_step(os.path.join(folder, name), "stdout", regex, scale, name)
            if step.value is not None or step.unread:
                return step
        return ProofStep("stdout: no step matched its pattern")

    def _written(self, kind: str, path: str, key: str | None, scale: float) -> ProofStep:
        try:
            pattern = self.path(path)
        except KeyError as error:
            return ProofStep(_describe_missing_value(path, error), unread=True)
        from muster.readers.records.record_steps import files_with_steps

        files = [file for match in self._newest(pattern)[:_MOST_MATCHES] for file in files_with_steps(kind, match)]
        if not files:
            trouble = why_glob_is_unreadable(pattern)
            nothing = "there are no records" if kind in RECORD_FILE_KINDS else "does not exist"
            return ProofStep(trouble or f"{path}: {nothing}", unread=trouble is not None)
        steps = [read_newest_step(file, kind, key, scale, self._name(file)) for file in files[-_MOST_MATCHES:]]
        return replace(max(steps, key=rank_of_step), ended=steps[-1].ended)

    def _judge_step(self, proof: StepProof, step: ProofStep | None) -> Evidence:
        try:
            full = float(render_template(proof.min, self.values))
        except KeyError as error:
            return _proof_evidence("step", _describe_missing_value(proof.min, error), UNREAD)
        except ValueError:
            return _proof_evidence("step", f"the wanted step '{proof.min}' is no number", UNREAD)
        wanted = full * (1 - proof.within)
        text = f"wanted {proof_step_text(wanted)}" + (f" of {proof_step_text(full)}" if proof.within else "")
        if step is None:
            return _proof_evidence("step", f"no progress source holds steps, {text}", UNREAD)
        if step.value is None:
            return _proof_evidence("step", f"{step.reading}, {text}", UNREAD if step.unread else FAILS)
        if step.value < wanted - 1e-6:
            return _proof_evidence("step", f"{step.reading}, {text}", FAILS)
        if odd := self._other_unit(step, full):
            # with exit 0 it is no more than told; without, a step in another unit proves nothing
            return _proof_evidence("step", f"{step.reading}, {text}: {odd}", ABSTAINS if self.ended_well else UNREAD)
        return _proof_evidence("step", f"{step.reading}, {text}", HOLDS)

    def _other_unit(self, step: ProofStep, full: float) -> str:
        """Why it counts something else than what was wanted; empty: nothing says so."""
        repeat = action_repeat_of_run(self.base)
        right = f"{repeat.where} is {repeat.times:g}: `scale: {1 / repeat.times:g}`" if repeat else ""
        if repeat and step.scale != 1.0 and abs(step.scale * repeat.times - 1) > _ROUNDED_SCALE:
            return f"its steps are counted in another unit, for {right}"
        if step.value is not None and step.value > OTHER_UNIT_FACTOR * full:
            return f"that is more than was asked for, so it is counted in another unit; {right or 'fix `scale:`'}"
        return ""

    # -- the checkpoint

    def _judge_checkpoint(self, proof: CheckpointProof) -> list[Evidence]:
        try:
            pattern = self.path(proof.path)
        except KeyError as error:
            return [_proof_evidence("checkpoint", _describe_missing_value(proof.path, error), UNREAD)]
        matches = self._newest(pattern)
        if not matches:
            trouble = why_glob_is_unreadable(pattern)
            says = UNREAD if trouble else FAILS
            return [_proof_evidence("checkpoint", trouble or f"{proof.path}: there is no checkpoint", says)]
        newest, *older = matches[:_MOST_MATCHES]
        reading = check_checkpoint(newest)
        if reading.valid:
            return self._opens(proof, newest, reading)
        told = f"{self._name(newest)} is no whole checkpoint: {reading.reason}"
        if reading.unread:
            return [_proof_evidence("checkpoint", f"{self._name(newest)}: {reading.reason}", UNREAD)]
        return self._previous(proof, told, older)

    def _opens(self, proof: CheckpointProof, path: str, reading: CheckpointReading) -> list[Evidence]:
        timed = self._saved(proof, path) if proof.saved_after > 0 else None
        step = step_of_checkpoint(path)
        holds = f", {self._of_steps(step)}" if step and not timed else ""
        opens = _proof_evidence("checkpoint", f"{self._name(path)} opens ({reading.how}){holds}", HOLDS)
        return [opens, timed] if timed else [opens]

    def _of_steps(self, step: CheckpointStep) -> str:
        share = step.share(self.job.steps)
        return str(step) if share is None else f"{step} of {self.job.steps} ({_percent_text(int(share * 1000) / 1000)})"

    def _previous(self, proof: CheckpointProof, told: str, older: list[str]) -> list[Evidence]:
        """The newest is broken. An older whole one counts only if it is proven to be late enough."""
        for path in older:
            reading = check_checkpoint(path)
            if not reading.valid:
                continue
            told += f"; the previous one, {self._name(path)}, opens ({reading.how})"
            if proof.saved_after <= 0:
                return [_proof_evidence("checkpoint", f"{told}, but the last save was lost", FAILS)]
            timed = self._saved(proof, path)
            return [_proof_evidence("checkpoint", told, ABSTAINS if timed.says == HOLDS else FAILS), timed]
        return [_proof_evidence("checkpoint", told, FAILS)]

    def _saved(self, proof: CheckpointProof, path: str) -> Evidence:
        """By its own step where that decides, else by its time; both are told."""
        step = step_of_checkpoint(path)
        says, when = self._timed(proof, path)
        by_steps = step.is_late(self.job.steps, proof.saved_after) if step else None
        if by_steps is not None:
            says = HOLDS if by_steps else FAILS
        held = f"; it holds {self._of_steps(step)}" if step else ""
        return _proof_evidence("checkpoint", f"{when}{held}, wanted after {_percent_text(proof.saved_after)}", says)

    def _timed(self, proof: CheckpointProof, path: str) -> tuple[str, str]:
        name = self._name(path)
        if self.window is None:
            return UNREAD, f"{name}: when the run started and ended is not known"
        share = self.window.share(checkpoint_saved_at(path), proof.saved_after)
        if share.value is None:
            return ABSTAINS if share.late is None else HOLDS if share.late else FAILS, f"{name} {share.why}"
        # rounded down: 89.7 % must not read as the 90 % that was wanted
        text = f"{name} saved at {_percent_text(int(share.value * 1000) / 1000)} of the run"
        return HOLDS if share.late else FAILS, text

    # -- files

    def _judge_files(self, wanted: str) -> Evidence:
        try:
            pattern = self.path(wanted)
        except KeyError as error:
            return _proof_evidence("files", _describe_missing_value(wanted, error), UNREAD)
        matches = paths_fitting(pattern)
        if not matches:
            trouble = why_glob_is_unreadable(pattern)
            return _proof_evidence("files", trouble or f"{wanted}: no such file", UNREAD if trouble else FAILS)
        since = self.fits.since
        own = [match for match in matches if since is None or came_at(match) >= since]
        if not own:
            return _proof_evidence("files", f"{wanted}: {len(matches)} found, from before the start", FAILS)
        full = sum(map(path_has_content, own))
        if not full:
            return _proof_evidence("files", f"{wanted}: {len(own)} found, all of them empty", FAILS)
        return _proof_evidence("files", f"{wanted}: {full} found", HOLDS)

    # -- results

    def _judge_result(self, result: DeclaredResult, into: dict[str, float]) -> Evidence:
        """What is missing, no number or not finite is an error of this cell, and no hole in a table later."""
        signal = f"result {result.name}"
        try:
            path = self._result_file(result)
            others = {each.name: each for each in self.job.results}
            pieces, step = self._pieces(result, path), step_key_of_result(self.job, result)
            found = read_cell_result(result, path, self._name(path), others, pieces, step)
        except KeyError as error:
            return _proof_evidence(signal, _describe_missing_value(result.path, error), UNREAD)
        except FileNotFoundError:
            return _proof_evidence(signal, f"{result.path}: no such file", FAILS)
        except NoResult as error:
            return _proof_evidence(signal, f"{result.name}: {self._name(path)}: {error}", FAILS)
        except OSError as error:
            says = FAILS if is_permanent_read_error(error) else UNREAD
            return _proof_evidence(signal, f"{result.path} can't be read: {error.strerror or error}", says)
        into[result.name] = found.value
        return _proof_evidence(signal, found.text, HOLDS)

    def _pieces(self, result: DeclaredResult, path: str) -> tuple[LogPiece, ...]:
        """The same log of the attempts that it goes on from, and its own."""
        if not self.before or result.kind not in LOG_KINDS:
            return ()
        files = [
            (each.order.n, each.file_of(result), step_in_checkpoint_name(each.order.resumed_from))
            for each in self.before
        ]
        return pieces_of_log([*files, (self.order.n, path, step_in_checkpoint_name(self.order.resumed_from))])

    def file_of(self, result: DeclaredResult) -> str | None:
        try:
            return self._result_file(result)
        except (KeyError, OSError):
            return None

    def _result_file(self, result: DeclaredResult) -> str:
        """The newest that fits. Of the logs the one that has a match: Python's logging goes to stderr."""
        if result.kind == "stdout":
            logs = [os.path.join(os.path.dirname(self.order.out), name) for name in ("stdout.log", "stderr.log")]
            return next((log for log in logs if _has_match_in_file(log, result.path)), logs[0])
        pattern = self.path(result.path)
        matches = self._newest(pattern)
        if not matches:
            if trouble := why_glob_is_unreadable(pattern):
                raise OSError(trouble)
            raise FileNotFoundError(pattern)
        return matches[0]

    # -- paths

    def _newest(self, pattern: str) -> list[str]:
        """What fits, the newest first; what was there before the attempt is not its own."""
        since = self.fits.since
        return [path for path in newest_paths_first(pattern) if since is None or path_time(path) >= since]

    def places(self) -> ResultPlaces:
        results: dict[str, str] = {}
        for result in self.job.results:
            with contextlib.suppress(KeyError, OSError):
                results[result.name] = self._result_file(result)
        asked = self.job.proof.checkpoint
        saves = [asked.path] if asked else [s.path for s in self.job.progress if s.kind == "checkpoint"]
        steps = [source.path for source in self.job.progress if source.kind in ("jsonl", "csv", "files")]
        written = [time for path in self._existing(steps) if (time := path_time(path)) > 0]
        logs = self._existing([source.path for source in self.job.progress if source.kind in ("jsonl", "csv")])
        return ResultPlaces(
            results,
            next(iter(self._existing(saves)), None),
            self.window,
            max(written, default=None),
            (*logs, *self._records()),
            {name: self._pieces(each, results[name]) for each in self.job.results if (name := each.name) in results},
            self._files_before(),
        )

    def _files_before(self) -> tuple[str, ...]:
        """That the attempts which it goes on from left, and that numbers are read from."""
        found: list[str] = []
        for each in self.before:
            mine = [path for result in self.job.results if result.kind in LOG_KINDS and (path := each.file_of(result))]
            found += [*mine, *each.places().logs]
        return tuple(dict.fromkeys(found))

    def _records(self) -> list[str]:
        """The files that W&B and TensorBoard wrote their records into."""
        recorded = [source for source in self.job.progress if source.kind in ("wandb", "tensorboard")]
        if not recorded:
            return []
        from muster.readers.records.logged_runs import record_readers

        return [
            file
            for source in recorded
            for path in self._existing([source.path])
            for reader, _ in record_readers(path, source.kind)
            for file in reader.files
        ]

    def _existing(self, patterns: Sequence[str]) -> list[str]:
        """The newest file of each."""
        found: list[str] = []
        for pattern in patterns:
            with contextlib.suppress(KeyError):
                found += self._newest(self.path(pattern))[:1]
        return found

    def path(self, path: str) -> str:
        """An absolute glob; values are put in as they are, not as globs. Raises KeyError for an unknown placeholder."""
        text = render_template(path, {name: glob.escape(value) for name, value in self.values.items()})
        return os.path.join(glob.escape(self.base), text)

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self.base) if path.startswith(self.base) else path


def _has_match_in_file(path: str, regex: str) -> bool:
    try:
        return has_printed_match(path, regex)
    except OSError:
        return False


def _proof_evidence(signal: str, reading: str, says: str) -> Evidence:
    return Evidence(signal, "proof", reading, says)


def _describe_missing_value(text: str, error: KeyError) -> str:
    return f"'{text}' asks for {{{error.args[0]}}}, which has no value here"


def _percent_text(share: float) -> str:
    return f"{share * 100:.3g} %"


def order_of_found_run(record: CellRecord, path: str) -> Order:
    """As if Muster had started it: the run's folder is its output, and its log is looked for there."""
    return Order(
        cell=record.cell.id,
        n=len(record.attempts) + 1,
        token="adopted",
        epoch=0,
        argv=(),
        cwd=path,
        env={},
        env_file="",
        slots=(),
        out=str(Path(path, "out")),
        output=path,
        hash=record.hash,
        claimed_at="",
        claimed_boot=0.0,
        boot_id="",
        retry_cause=None,
        resumed_from=None,
        state="",
        bell="",
        ballast="",
        revive=(),
        revive_s=0.0,
        axes=record.cell.axes,
        code={},
    )
