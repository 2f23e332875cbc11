"""Schedules, curricula, gates and warnings of a training in stages: standard library only, no I/O, no clock.

from muster.stages import Gate, GateSettings

gate = Gate(GateSettings.of({"success": [{"key": "survival", "min": 0.8, "window": "mean 3"}], "required": 2}))
decision = gate.observe(iteration, {"survival": 0.83}, stage="main")
if decision.state == "advance":
    ...
"""

from muster.stages.alarms import Alarm, Watch
from muster.stages.curriculum import Curriculum
from muster.stages.cycler import Cycler
from muster.stages.decision import Decision
from muster.stages.errors import GateError, SpecError
from muster.stages.gate import Gate
from muster.stages.schedule import Schedule, Stage
from muster.stages.settings import GateSettings

__all__ = [
    "Alarm", "Curriculum", "Cycler", "Decision", "Gate", "GateError", "GateSettings", "Schedule", "SpecError", "Stage",
    "Watch",
]  # fmt: skip
