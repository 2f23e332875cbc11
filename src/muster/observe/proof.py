"""The proof: what turns exit 0 into DONE. Each check leaves one piece of evidence in plain words, with its numbers."""

# Paths are texts here: globs are no paths, and this runs after every exit.
# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.domain.campaign import CheckpointProof, Job, Progress, Result, StepProof
from muster.domain.cell import Cell, names_in
from muster.domain.order import Order
from muster.domain.sighting import Exit, ProofReading
from muster.domain.template import render
from muster.domain.verdict import Evidence
from muster.observe import outputs
from muster.observe.checkpoint_steps import TOO_FAR, CheckpointStep, step_of
from muster.observe.checkpoints import CheckpointReading, open_checkpoint, saved_at
from muster.observe.find_target import repeat_of
from muster.observe.joining import step_in_name
from muster.observe.log_pieces import LogPiece, log_pieces
from muster.observe.matches import came_at, fitting, has_content, newest_first, time_of
from muster.observe.results import LOGS, NoResult, has_match, read_result
from muster.observe.step_reads import StepRead, rank, read_records, read_step, step_text
from muster.observe.window import Window, window_of
from muster.ports.regular_files import is_certain

HOLDS, FAILS, UNREAD = "holds", "fails", "can't be read"
ABSTAINS = "abstains"  # says something worth knowing and decides nothing
_NO_PROOF = (Evidence("proof", "proof", "no proof declared: exit 0 is enough", HOLDS),)
STEPS = ("jsonl", "csv", "stdout")
RECORDS = ("wandb", "tensorboard")
_ROUNDED = 0.01  # `scale: 0.33` is a third
_MOST_MATCHES = 16  # files of one glob that are opened: the newest ones


class FileProofReader:
    """Reads the files that a run left behind. `before`: the orders of the attempts that one goes on from."""

    def __init__(self, before: Callable[[Order], Sequence[Order]] = lambda _: ()) -> None:
        self._before = before

    def read(self, job: Job, cell: Cell, order: Order, exit: Exit | None) -> ProofReading:  # noqa: A002
        unknown = exit is None or (exit.code is None and exit.signal is None)
        lost = unknown and bool(_with_exits(job))
        if not job.asks_proof and not outputs.is_glob(order.output) and not lost:
            return ProofReading(True, _NO_PROOF, order.output)  # the hot path: not even a stat
        window = window_of(order, exit)
        fits = outputs.fits_of(order, window)
        before = readings_before(job, cell, self._before(order)) if order.resumed_from and job.results else ()
        well = exit is not None and exit.code == 0
        reading = _Reading(job, order, path_values(job, cell, order), fits, window, before, well)
        found = reading.read() if job.asks_proof else ProofReading(True, _NO_PROOF, reading.output)
        return replace(found, recorded=reading.recorded()) if lost else found

    def progress(self, job: Job, cell: Cell, order: Order) -> ProofReading:
        """How far a living run is: its newest step, and where it writes. Proves nothing."""
        reading = _Reading(job, order, path_values(job, cell, order), outputs.fits_of(order, None), None)
        return ProofReading(None, (), reading.output, reading.newest_step())


@dataclass(frozen=True, slots=True)
class Places:
    """The files that results and the proof are read from."""

    results: Mapping[str, str]
    checkpoint: str | None
    window: Window | None
    last_step: float | None  # when a file with steps was last written
    logs: tuple[str, ...] = ()  # that learning curves are read from
    pieces: Mapping[str, tuple[LogPiece, ...]] = field(default_factory=dict)  # result -> its log in each attempt
    before: tuple[str, ...] = ()  # files of earlier attempts that numbers are read from


def places_of(job: Job, cell: Cell, order: Order, exit_: Exit | None, before: Sequence[Order] = ()) -> Places:
    window = window_of(order, exit_)
    earlier = readings_before(job, cell, before)
    return _Reading(job, order, path_values(job, cell, order), outputs.fits_of(order, window), window, earlier).places()


def readings_before(job: Job, cell: Cell, orders: Sequence[Order]) -> tuple[_Reading, ...]:
    """Of the attempts that one goes on from: where they wrote."""
    return tuple(
        _Reading(job, order, path_values(job, cell, order), outputs.fits_of(order, None), None) for order in orders
    )


def step_key_of(job: Job, result: Result) -> str | None:
    """The key that counts the steps in the file of a result, where `progress:` names one."""
    same = [each.step for each in job.progress if (each.kind, each.path) == (result.kind, result.path)]
    return next(filter(None, same), None)


def pattern_of(job: Job, cell: Cell, order: Order, path: str) -> str | None:
    """A path of the campaign file as an absolute glob; None: it asks for what has no value here."""
    try:
        return _Reading(job, order, path_values(job, cell, order), outputs.fits_of(order, None), None).path(path)
    except KeyError:
        return None


def _with_exits(job: Job) -> list[Progress]:
    """Sources in which a run that ends writes down how."""
    return [each for each in job.progress if each.kind == "wandb"]


def path_values(job: Job, cell: Cell, order: Order) -> dict[str, str]:
    """The placeholders that a path or a number may hold."""
    values = {"cell": order.cell, "attempt": str(order.n), "out": order.out}
    if job.steps is not None:
        values["steps"] = str(job.steps)
    for (axis, value), name in zip(cell.values, names_in(order.cell, cell), strict=True):
        values[axis] = name
        values[f"{axis}.args"] = value.args
    return values


@dataclass(frozen=True, slots=True)
class _Reading:
    job: Job
    order: Order
    values: Mapping[str, str]
    fits: outputs.Fits
    window: Window | None
    before: tuple[_Reading, ...] = ()  # of the attempts that it goes on from, the first one first
    ended_well: bool = True  # its exit is known to be 0

    @property
    def output(self) -> str | None:
        return next(iter(self.fits.paths), None)

    @property
    def base(self) -> str:
        """What paths are relative to; where no output was found, a folder that does not exist."""
        return outputs.folder_of(self.output or self.order.output)

    @property
    def step(self) -> StepRead | None:
        return max(self._steps(), key=rank, default=None)

    def newest_step(self) -> float | None:
        """Of a living run: a checkpoint may hold a later step than a log that lags, or the only one there is."""
        logged = self.step.value if self.step else None
        saves = [each.path for each in self.job.progress if each.kind == "checkpoint"]
        held = [found for path in self._existing(saves) if (found := step_of(path)) and found.share(self.job.steps)]
        return max([*(each.value for each in held), *([] if logged is None else [logged])], default=None)

    def recorded(self) -> int | None:
        """The exit code that the run itself wrote down, where its log has a place for it."""
        read = (self._recorded(each.kind, each.path, each.step, each.scale) for each in _with_exits(self.job))
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
            trouble = outputs.unreadable(pattern)
            missing = f"no folder fits {pattern} since the start" if outputs.is_glob(pattern) else f"no {pattern}"
            return [_evidence("output", trouble or missing, UNREAD if trouble else FAILS)]
        if len(self.fits.paths) == 1:
            return []
        return [_evidence("output", f"{len(self.fits.paths)} folders fit {pattern}; took {self.output}", ABSTAINS)]

    # -- steps

    def _steps(self) -> list[StepRead]:
        found: list[StepRead] = []
        for source in self.job.progress:
            if source.kind in RECORDS:
                found.append(self._recorded(source.kind, source.path, source.step, source.scale))
            elif source.kind == "stdout":
                found.append(self._logged(source.path, source.scale))
            elif source.kind in STEPS and source.step:
                found.append(self._written(source.kind, source.path, source.step, source.scale))
        return found

    def _logged(self, regex: str, scale: float) -> StepRead:
        folder = os.path.dirname(self.order.out)
        for name in ("stdout.log", "stderr.log"):  # Python's logging and progress bars go to stderr
            step = read_step(os.path.join(folder, name), "stdout", regex, scale, name)
            if step.value is not None or step.unread:
                return step
        return StepRead("stdout: no step matched its pattern")

    def _written(self, kind: str, path: str, key: str, scale: float) -> StepRead:
        try:
            pattern = self.path(path)
        except KeyError as error:
            return StepRead(_no_value(path, error), unread=True)
        matches = self._newest(pattern)
        if not matches:
            trouble = outputs.unreadable(pattern)
            return StepRead(trouble or f"{path}: does not exist", unread=trouble is not None)
        steps = [read_step(match, kind, key, scale, self._name(match)) for match in matches[:_MOST_MATCHES]]
        return max(steps, key=rank)

    def _recorded(self, kind: str, path: str, key: str | None, scale: float) -> StepRead:
        from muster.observe.metrics import record_steps as records

        try:
            pattern = self.path(path)
        except KeyError as error:
            return StepRead(_no_value(path, error), unread=True)
        files_of = records.wandb_files if kind == "wandb" else records.board_files
        files = [file for match in self._newest(pattern)[:_MOST_MATCHES] for file in files_of(match)]
        if not files:
            trouble = outputs.unreadable(pattern)
            return StepRead(trouble or f"{path}: there are no records", unread=trouble is not None)
        steps = [read_records(file, kind, key, scale, self._name(file)) for file in files[-_MOST_MATCHES:]]
        return replace(max(steps, key=rank), ended=steps[-1].ended)

    def _judge_step(self, proof: StepProof, step: StepRead | None) -> Evidence:
        try:
            full = float(render(proof.min, self.values))
        except KeyError as error:
            return _evidence("step", _no_value(proof.min, error), UNREAD)
        except ValueError:
            return _evidence("step", f"the wanted step '{proof.min}' is no number", UNREAD)
        wanted = full * (1 - proof.within)
        text = f"wanted {step_text(wanted)}" + (f" of {step_text(full)}" if proof.within else "")
        if step is None:
            return _evidence("step", f"no progress source holds steps, {text}", UNREAD)
        if step.value is None:
            return _evidence("step", f"{step.reading}, {text}", UNREAD if step.unread else FAILS)
        if step.value < wanted - 1e-6:
            return _evidence("step", f"{step.reading}, {text}", FAILS)
        if odd := self._other_unit(step, full):
            # with exit 0 it is no more than told; without, a step in another unit proves nothing
            return _evidence("step", f"{step.reading}, {text}: {odd}", ABSTAINS if self.ended_well else UNREAD)
        return _evidence("step", f"{step.reading}, {text}", HOLDS)

    def _other_unit(self, step: StepRead, full: float) -> str:
        """Why it counts something else than what was wanted; empty: nothing says so."""
        repeat = repeat_of(self.base)
        right = f"{repeat.where} is {repeat.times:g}: `scale: {1 / repeat.times:g}`" if repeat else ""
        if repeat and step.scale != 1.0 and abs(step.scale * repeat.times - 1) > _ROUNDED:
            return f"its steps are counted in another unit, for {right}"
        if step.value is not None and step.value > TOO_FAR * full:
            return f"that is more than was asked for, so it is counted in another unit; {right or 'mend `scale:`'}"
        return ""

    # -- the checkpoint

    def _judge_checkpoint(self, proof: CheckpointProof) -> list[Evidence]:
        try:
            pattern = self.path(proof.path)
        except KeyError as error:
            return [_evidence("checkpoint", _no_value(proof.path, error), UNREAD)]
        matches = self._newest(pattern)
        if not matches:
            trouble = outputs.unreadable(pattern)
            says = UNREAD if trouble else FAILS
            return [_evidence("checkpoint", trouble or f"{proof.path}: there is no checkpoint", says)]
        newest, *older = matches[:_MOST_MATCHES]
        reading = open_checkpoint(newest)
        if reading.valid:
            return self._opens(proof, newest, reading)
        told = f"{self._name(newest)} is no whole checkpoint: {reading.reason}"
        if reading.unread:
            return [_evidence("checkpoint", f"{self._name(newest)}: {reading.reason}", UNREAD)]
        return self._previous(proof, told, older)

    def _opens(self, proof: CheckpointProof, path: str, reading: CheckpointReading) -> list[Evidence]:
        timed = self._saved(proof, path) if proof.saved_after > 0 else None
        step = step_of(path)
        holds = f", {self._of_steps(step)}" if step and not timed else ""
        opens = _evidence("checkpoint", f"{self._name(path)} opens ({reading.how}){holds}", HOLDS)
        return [opens, timed] if timed else [opens]

    def _of_steps(self, step: CheckpointStep) -> str:
        share = step.share(self.job.steps)
        return str(step) if share is None else f"{step} of {self.job.steps} ({_percent(int(share * 1000) / 1000)})"

    def _previous(self, proof: CheckpointProof, told: str, older: list[str]) -> list[Evidence]:
        """The newest is broken. An older whole one counts only if it is proven to be late enough."""
        for path in older:
            reading = open_checkpoint(path)
            if not reading.valid:
                continue
            told += f"; the previous one, {self._name(path)}, opens ({reading.how})"
            if proof.saved_after <= 0:
                return [_evidence("checkpoint", f"{told}, but the last save was lost", FAILS)]
            timed = self._saved(proof, path)
            return [_evidence("checkpoint", told, ABSTAINS if timed.says == HOLDS else FAILS), timed]
        return [_evidence("checkpoint", told, FAILS)]

    def _saved(self, proof: CheckpointProof, path: str) -> Evidence:
        """By its own step where that decides, else by its time; both are told."""
        step = step_of(path)
        says, when = self._timed(proof, path)
        by_steps = step.is_late(self.job.steps, proof.saved_after) if step else None
        if by_steps is not None:
            says = HOLDS if by_steps else FAILS
        held = f"; it holds {self._of_steps(step)}" if step else ""
        return _evidence("checkpoint", f"{when}{held}, wanted after {_percent(proof.saved_after)}", says)

    def _timed(self, proof: CheckpointProof, path: str) -> tuple[str, str]:
        name = self._name(path)
        if self.window is None:
            return UNREAD, f"{name}: when the run started and ended is not known"
        share = self.window.share(saved_at(path), proof.saved_after)
        if share.value is None:
            return ABSTAINS if share.late is None else HOLDS if share.late else FAILS, f"{name} {share.why}"
        # rounded down: 89.7 % must not read as the 90 % that was wanted
        text = f"{name} saved at {_percent(int(share.value * 1000) / 1000)} of the run"
        return HOLDS if share.late else FAILS, text

    # -- files

    def _judge_files(self, wanted: str) -> Evidence:
        try:
            pattern = self.path(wanted)
        except KeyError as error:
            return _evidence("files", _no_value(wanted, error), UNREAD)
        matches = fitting(pattern)
        if not matches:
            trouble = outputs.unreadable(pattern)
            return _evidence("files", trouble or f"{wanted}: no such file", UNREAD if trouble else FAILS)
        since = self.fits.since
        own = [match for match in matches if since is None or came_at(match) >= since]
        if not own:
            return _evidence("files", f"{wanted}: {len(matches)} found, from before the start", FAILS)
        full = sum(map(has_content, own))
        if not full:
            return _evidence("files", f"{wanted}: {len(own)} found, all of them empty", FAILS)
        return _evidence("files", f"{wanted}: {full} found", HOLDS)

    # -- results

    def _judge_result(self, result: Result, into: dict[str, float]) -> Evidence:
        """What is missing, no number or not finite is an error of this cell, and no hole in a table later."""
        signal = f"result {result.name}"
        try:
            path = self._result_file(result)
            others = {each.name: each for each in self.job.results}
            pieces, step = self._pieces(result, path), step_key_of(self.job, result)
            found = read_result(result, path, self._name(path), others, pieces, step)
        except KeyError as error:
            return _evidence(signal, _no_value(result.path, error), UNREAD)
        except FileNotFoundError:
            return _evidence(signal, f"{result.path}: no such file", FAILS)
        except NoResult as error:
            return _evidence(signal, f"{result.name}: {self._name(path)}: {error}", FAILS)
        except OSError as error:
            says = FAILS if is_certain(error) else UNREAD
            return _evidence(signal, f"{result.path} can't be read: {error.strerror or error}", says)
        into[result.name] = found.value
        return _evidence(signal, found.text, HOLDS)

    def _pieces(self, result: Result, path: str) -> tuple[LogPiece, ...]:
        """The same log of the attempts that it goes on from, and its own."""
        if not self.before or result.kind not in LOGS:
            return ()
        files = [(each.order.n, each.file_of(result), step_in_name(each.order.resumed_from)) for each in self.before]
        return log_pieces([*files, (self.order.n, path, step_in_name(self.order.resumed_from))])

    def file_of(self, result: Result) -> str | None:
        try:
            return self._result_file(result)
        except (KeyError, OSError):
            return None

    def _result_file(self, result: Result) -> str:
        """The newest that fits. Of the logs the one that has a match: Python's logging goes to stderr."""
        if result.kind == "stdout":
            logs = [os.path.join(os.path.dirname(self.order.out), name) for name in ("stdout.log", "stderr.log")]
            return next((log for log in logs if _matches_in(log, result.path)), logs[0])
        pattern = self.path(result.path)
        matches = self._newest(pattern)
        if not matches:
            if trouble := outputs.unreadable(pattern):
                raise OSError(trouble)
            raise FileNotFoundError(pattern)
        return matches[0]

    # -- paths

    def _newest(self, pattern: str) -> list[str]:
        """What fits, the newest first; what was there before the attempt is not its own."""
        since = self.fits.since
        return [path for path in newest_first(pattern) if since is None or time_of(path) >= since]

    def places(self) -> Places:
        results: dict[str, str] = {}
        for result in self.job.results:
            with contextlib.suppress(KeyError, OSError):
                results[result.name] = self._result_file(result)
        asked = self.job.proof.checkpoint
        saves = [asked.path] if asked else [s.path for s in self.job.progress if s.kind == "checkpoint"]
        steps = [source.path for source in self.job.progress if source.kind in ("jsonl", "csv", "files")]
        written = [time for path in self._existing(steps) if (time := time_of(path)) > 0]
        logs = self._existing([source.path for source in self.job.progress if source.kind in ("jsonl", "csv")])
        return Places(
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
            mine = [path for result in self.job.results if result.kind in LOGS and (path := each.file_of(result))]
            found += [*mine, *each.places().logs]
        return tuple(dict.fromkeys(found))

    def _records(self) -> list[str]:
        """The files that W&B and TensorBoard wrote their records into."""
        recorded = [source for source in self.job.progress if source.kind in ("wandb", "tensorboard")]
        if not recorded:
            return []
        from muster.observe.metrics.discover import records_of

        return [
            file
            for source in recorded
            for path in self._existing([source.path])
            for reader, _ in records_of(path, source.kind)
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
        text = render(path, {name: glob.escape(value) for name, value in self.values.items()})
        return os.path.join(glob.escape(self.base), text)

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self.base) if path.startswith(self.base) else path


def _matches_in(path: str, regex: str) -> bool:
    try:
        return has_match(path, regex)
    except OSError:
        return False


def _evidence(signal: str, reading: str, says: str) -> Evidence:
    return Evidence(signal, "proof", reading, says)


def _no_value(text: str, error: KeyError) -> str:
    return f"'{text}' asks for {{{error.args[0]}}}, which has no value here"


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"
