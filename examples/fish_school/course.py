"""What the schedules and the gate say to the training: how many fish, which hard starts, how difficult."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from muster.stages import Cycler, Gate, GateError
from muster.stages.schedule import Stage
from muster.stages.traces import schedule_trace
from muster.stages.training_flags import TrainingFlags

HERE = Path(__file__).parent


class Phase(NamedTuple):
    """What the gate holds back: a death costs more, and hunters are quicker. Evaluations stay as they are."""

    penalty: float
    quickness: float


PHASES = (Phase(1.0, 1.0), Phase(1.5, 1.04), Phase(2.0, 1.08), Phase(2.5, 1.12))


class Course:
    def __init__(self, settings: TrainingFlags) -> None:
        curriculum, schedule, gate, total = settings.curriculum, settings.schedule, settings.gate, settings.iterations
        if curriculum is None or schedule is None or gate is None or total is None:
            raise GateError("the school needs a curriculum, a tail schedule, a gate and a number of iterations")
        self.total, self.curriculum, self.schedule, self.watch = total, curriculum, schedule, settings.watch
        self.gate = Gate(gate)
        sources = dict.fromkeys(stage.source for stage in schedule.stages if stage.first <= total)
        self.cycler = Cycler({source: read_seeds(source) for source in sources}, replay=settings.tail.replay)

    def fish(self, iteration: int) -> int:
        return int(self.curriculum.value_at(iteration))

    def stage(self, iteration: int) -> Stage:
        return self.schedule.stage_at(iteration)

    @property
    def phase(self) -> Phase:
        return PHASES[min(self.gate.phase, len(PHASES) - 1)]

    def trace(self, reached: int) -> dict[str, Any]:
        found = schedule_trace(self.schedule, self.total, reached=reached, curriculum=self.curriculum, watch=self.watch)
        return found | {"drawn": self.cycler.drawn()}

    def state(self) -> dict[str, Any]:
        return {"gate": self.gate.state(), "cycler": self.cycler.state()}

    def load(self, state: dict[str, Any]) -> None:
        self.gate = Gate.resume(self.gate.settings, state["gate"])
        self.cycler.load(state["cycler"])


def read_seeds(source: str) -> list[dict[str, Any]]:
    """A path as it was given, or beside this file."""
    path = Path(source) if Path(source).exists() else HERE / source
    try:
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GateError(f"no tail seeds in {source}: {error}") from None
    return found
