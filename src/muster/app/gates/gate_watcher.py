"""The gates of a campaign over the runs that it has: reads what they write, decides, and keeps a trace of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path

from muster.app.metrics.cell_history import attempt_that_counts
from muster.engine.ports.clock import Clock
from muster.engine.ports.extension import ControllerExtension, MakeDecision, Observation, StopRequest
from muster.files.atomic_write import make_private_folder, private_opener
from muster.model.attempt import Attempt, CellRecord
from muster.model.campaign import DeclaredGate, section_as_written
from muster.model.campaign_state import CampaignState, GateRecord
from muster.model.decision import Decision
from muster.readers.background_reader import BackgroundReader
from muster.readers.gate_stream import GateStream, open_gate_stream
from muster.readers.gate_traces import TRACE_FOLDER, newest_gate_rows
from muster.readers.output_files import folder_of_output
from muster.stages.gate import Gate
from muster.stages.gate_decision import ADVANCE, FALL_BACK, HOLD
from muster.stages.gate_decision import Decision as GateDecision
from muster.stages.gate_settings import GateSettings
from muster.stages.schedule import Schedule
from muster.stages.traces import EvaluationRow, drop_superseded_rows, head, rows_with_gate_keys

MANY_ROWS = 50_000  # rows: of more, holds are left out of the trace
GATE_PATIENCE_S = 60.0  # with what has ended and does not answer
READ_TRIES = 3  # at what has ended and can't be read: nobody waits for it for ever
GateKey = tuple[str, int, str]  # cell, attempt, gate
_CAUSES = {"stop": "gate_stop", "prune": "pruned"}


@dataclass(frozen=True, slots=True)
class GateEvent:
    gate: str
    iteration: int
    state: str  # advance | fall_back | failure_hold: more failures than are borne | hold: an earlier one counts no more
    phase: int  # after it
    why: str


@dataclass(frozen=True, slots=True)
class GateProgress:
    events: tuple[GateEvent, ...] = ()
    over: bool = False  # all that the run will ever write was read
    iteration: int = -1  # of the last row; -1: none was read
    failed: GateEvent | None = None  # of this attempt: more failures than are borne


@dataclass(slots=True)
class WatchedGate:
    """One gate over one attempt. Used by one thread at a time."""

    name: str
    settings: GateSettings
    schedule: Schedule | None
    stream: GateStream
    trace: Path
    output: str
    earlier: Callable[[], list[EvaluationRow]] = (
        list  # of earlier attempts, where this one was resumed; read apart from the loop
    )
    floor: int = -1  # of a run that goes on in the folder of an earlier attempt: the last iteration of that one
    rows: list[EvaluationRow] = field(default_factory=list)
    gate: Gate = field(init=False)
    old: list[GateEvent] = field(default_factory=list)  # what stood when this attempt began: told with its own one
    events: list[GateEvent] = field(default_factory=list)
    _before: list[EvaluationRow] | None = None
    _begun: bool = False
    _broken: bool = False
    _failed: int = 0

    def __post_init__(self) -> None:
        self.gate = Gate(self.settings)

    def look(self, ended: bool) -> GateProgress:
        """What is new is taken in. Raises nothing: what nobody can read decides nothing and stops no controller."""
        try:
            if self._before is None:
                self._before = self.earlier()
            news = self.stream.look()
            fresh = rows_with_gate_keys([*news.rows, *(self.stream.rest() if ended else ())], self.settings)
            self._take(fresh, self._before, anew=news.fresh, last=ended)
            self._failed = 0
        except OSError:
            self._failed += 1
        except Exception:  # whatever a run leaves behind: no further look will read it
            self._failed = READ_TRIES
        over = ended and (not self._failed or self._failed >= READ_TRIES)
        failed = next((each for each in self.events if each.state not in (ADVANCE, FALL_BACK)), None)
        found = GateProgress((*self.old, *self.events), over, self.gate.iteration, failed)
        if over:
            self.rows, self._before = [], None  # many may be read to their end at once
        return found

    def _take(self, fresh: list[EvaluationRow], before: list[EvaluationRow], *, anew: bool, last: bool) -> None:
        """`last`: nothing more will come. A run that was resumed at its very end stands where it was left."""
        back = any(row.iteration <= self.gate.iteration for row in fresh)
        fresh = drop_superseded_rows(fresh)
        if anew or back:
            self.rows = drop_superseded_rows([*([] if anew else self.rows), *fresh])
        else:
            self.rows += fresh
        if anew or back or (not self._begun and (fresh or (last and before))):
            self._begin_anew(before)
        elif fresh:
            self._write([self._decide(row) for row in fresh], "a")

    def _begin_anew(self, before: list[EvaluationRow]) -> None:
        """A run that goes back, or goes on from a checkpoint: its gate is made again from the rows that count."""
        self.gate, self.events, self._broken, self._begun = Gate(self.settings), [], False, True
        rows = drop_superseded_rows([*before, *self.rows])
        of_before = max(len(rows) - len(self.rows), bisect_right(rows, self.floor, key=attrgetter("iteration")))
        decided = [self._decide(row) for row in rows[:of_before]]
        # the others were told with their own attempt; what this one does not bear, it is stopped for
        self.old, self.events, self._broken = self.events[-1:], [], False
        decided += [self._decide(row) for row in rows[of_before:]]
        self._write(decided, "w")

    def _decide(self, row: EvaluationRow) -> GateDecision:
        stage = row.stage
        if not stage and self.schedule and row.iteration >= 1:
            stage = self.schedule.stage_at(row.iteration).type
        found = self.gate.observe(row.iteration, row.values, stage)
        if found.state in (ADVANCE, FALL_BACK) or (found.broken and not self._broken):
            self.events.append(GateEvent(self.name, row.iteration, found.state, found.phase, found.why))
        self._broken = found.broken
        return found

    def _write(self, decided: Sequence[GateDecision], mode: str) -> None:
        """For people, and for `gates replay`: what it says can be made again from what the run wrote."""
        lines = [each.line() for each in decided if len(self.rows) <= MANY_ROWS or each.state != HOLD]
        try:
            make_private_folder(self.trace.parent)
            # JSON has such escapes
            with open(self.trace, mode, encoding="utf-8", errors="backslashreplace", opener=private_opener) as file:
                file.writelines(
                    f"{line}\n" for line in ([head(self.settings, self.name)] if mode == "w" else []) + lines
                )
        except OSError:
            pass


@dataclass(slots=True)
class GateWatcher(ControllerExtension):
    """`folder_of`: an attempt's own folder; `output_of`: where an open one writes, as far as is known."""

    folder_of: Callable[[str, int], Path]
    output_of: Callable[[Attempt], str | None]
    chain_before: Callable[[Attempt], Sequence[int]]  # the attempts that it goes on from
    clock: Clock
    make_decision: MakeDecision
    every_s: float = 5.0
    _gates: Mapping[str, DeclaredGate] = field(default_factory=dict)
    _watched: dict[GateKey, WatchedGate] = field(default_factory=dict)
    _over: set[GateKey] = field(default_factory=set)  # those that were read to their end
    _ended: dict[GateKey, float] = field(default_factory=dict)  # since when they are known to have ended
    _next: float = 0.0
    _shift: BackgroundReader[GateKey, GateProgress] = field(init=False)

    def __post_init__(self) -> None:
        self._begin({})

    def _begin(self, gates: Mapping[str, DeclaredGate]) -> None:
        """With nothing known: other settings decide otherwise."""
        self._gates, self._watched, self._over, self._ended, self._next = gates, {}, set(), {}, 0.0
        self._shift = BackgroundReader(self.clock)  # apart from the loop: a file system may hang

    def observe(self, state: CampaignState, *, polling: bool) -> Observation:  # noqa: ARG002
        gates = state.campaign.gates or {}
        if gates != self._gates:
            self._begin(gates)
        left = {key: attempt for key, attempt, _ in self._followed(state)}
        self._give_up(key for key, attempt in left.items() if attempt.outcome)
        left = {key: attempt for key, attempt in left.items() if key not in self._over}
        ended = any(attempt.outcome for attempt in left.values())
        if left and (ended or self.clock.boot() >= self._next):
            self._next = self.clock.boot() + self.every_s
            self._shift.read(dict(self._asks(state)))
        standing = {key: read.value for key, read in list(self._shift.newest.items())}
        for key, found in standing.items():
            if found.over:
                self._over.add(key)
                self._watched.pop(key, None)
        unread = left.keys() - self._over
        decisions = tuple(self._decisions(state, standing))
        return Observation(decisions, dict(self._stops(standing, unread)), frozenset(key[:2] for key in unread))

    def _give_up(self, ended: Iterable[GateKey]) -> None:
        """A file system that does not answer keeps no campaign from its end, unless the next job waits for it."""
        now = self.clock.boot()
        for key in ended:
            if now - self._ended.setdefault(key, now) > GATE_PATIENCE_S and not self._gates[key[2]].lets:
                self._over.add(key)

    def _decisions(self, state: CampaignState, standing: Mapping[GateKey, GateProgress]) -> Iterator[Decision]:
        for (cell, n, gate), found in standing.items():
            for event in unrecorded_gate_events(gate, n, found, state.gates.get(cell, {}).get(gate)):
                yield from _gate_decisions(self.make_decision, state.cells[cell].attempts[n - 1], event)

    def _stops(
        self, standing: Mapping[GateKey, GateProgress], unread: AbstractSet[GateKey]
    ) -> Iterator[tuple[tuple[str, int], StopRequest]]:
        for key, found in standing.items():
            cause = _CAUSES.get(self._gates[key[2]].act)
            if cause and found.failed and key in unread:
                why = f"gate {key[2]} at iteration {found.failed.iteration}: {found.failed.why}"
                yield key[:2], StopRequest(cause, why)

    def _followed(self, state: CampaignState) -> Iterator[tuple[GateKey, Attempt, CellRecord]]:
        """Of each cell the attempt that counts, until all of it was read."""
        for name, gate in self._gates.items():
            for record in state.cells.values():
                attempt = record.open or attempt_that_counts(record)
                if attempt and record.cell.job == gate.job and (key := (*attempt.key, name)) not in self._over:
                    yield key, attempt, record

    def _asks(self, state: CampaignState) -> Iterator[tuple[GateKey, Callable[[], GateProgress]]]:
        for key, attempt, record in self._followed(state):
            output, watched = self._output(attempt), self._watched.get(key)
            if output and (watched is None or watched.output != output):
                watched = self._watch(key, self._gates[key[2]], record, attempt, output)
            if watched:
                yield key, partial(watched.look, attempt.outcome is not None)

    def _watch(
        self, key: GateKey, gate: DeclaredGate, record: CellRecord, attempt: Attempt, output: str
    ) -> WatchedGate:
        schedule = Schedule.of(gate.schedule) if gate.schedule else None
        name = re.sub(r"[^\w.-]", "_", key[2])
        trace = self.folder_of(*attempt.place) / TRACE_FOLDER / f"{name}.jsonl"
        stream = open_gate_stream(gate.read, gate.stage, folder_of_output(output), self._since(attempt))
        before = partial(self._before, gate, record, attempt, output)
        floor = self._floor(name, record, attempt, output)
        settings = GateSettings.of(section_as_written(gate))
        found = WatchedGate(key[2], settings, schedule, stream, trace, output, before, floor)
        self._watched[key] = found
        return found

    def _output(self, attempt: Attempt) -> str | None:
        if attempt.outcome is None:
            return self.output_of(attempt)  # None: where it writes is not known yet
        return attempt.outcome.output or str(self.folder_of(*attempt.place) / "out")

    def _since(self, attempt: Attempt) -> float:
        try:
            return (self.folder_of(*attempt.place) / "attempt.json").stat().st_mtime
        except OSError:
            return 0.0  # it was adopted

    def _floor(self, name: str, record: CellRecord, attempt: Attempt, output: str) -> int:
        shared = [each for each in self._chain(record, attempt) if self._output(each) == output]
        rows = [newest_gate_rows(self.folder_of(*each.place)).get(name) for each in shared]
        return max((int(row["iteration"]) for row in rows if row), default=-1)

    def _before(self, gate: DeclaredGate, record: CellRecord, attempt: Attempt, own: str) -> list[EvaluationRow]:
        """What earlier attempts wrote, where this one goes on from their checkpoint: a streak goes on too."""
        from muster.readers.gate_traces import read_gate_rows

        outputs = [output for each in self._chain(record, attempt) if (output := self._output(each))]
        return drop_superseded_rows(
            row for output in dict.fromkeys(outputs) if output != own for row in read_gate_rows(gate, output)
        )

    def _chain(self, record: CellRecord, attempt: Attempt) -> list[Attempt]:
        before = self.chain_before(attempt) if attempt.n > 1 and not attempt.adopted else ()
        return [each for each in record.attempts if each.n in before]


def _gate_decisions(make_decision: MakeDecision, attempt: Attempt, event: GateEvent) -> list[Decision]:
    """What happened, and a notice of it: both, or neither."""
    text = f"gate {event.gate} of {attempt.cell} at iteration {event.iteration}: {event.why}"
    data = {"gate": event.gate, "iteration": event.iteration, "state": event.state, "phase": event.phase}
    return [
        make_decision("gate", event.why, attempt=attempt, data=data),
        make_decision("notice", text, attempt=attempt, data={"what": "GATE"}),
    ]


def unrecorded_gate_events(
    gate: str, attempt: int, found: GateProgress, known: GateRecord | None
) -> Sequence[GateEvent]:
    """What is not recorded yet. Where that which is recorded came to nothing, how it stands instead."""
    if known is None or known.attempt < attempt:
        return found.events
    if known.attempt > attempt:
        return ()
    for at, each in enumerate(found.events):
        if (each.iteration, each.state, each.phase) == (known.iteration, known.state, known.phase):
            return found.events[at + 1 :]
    if found.iteration < 0 or (found.iteration < known.iteration and not found.over):
        return ()  # it was not read as far yet, or it is gone: that takes nothing back
    if found.events:
        return [each for each in found.events if each.iteration > known.iteration] or found.events[-1:]
    if known.state == HOLD:
        return ()
    why = f"{known.state} at iteration {known.iteration} counts no more: the run went back, or the gate was changed"
    return (GateEvent(gate, found.iteration, HOLD, 0, why),)
