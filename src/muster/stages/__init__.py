"""Schedules, curricula, gates and warnings of a training in stages: standard library only, no I/O, no clock.

from muster.stages import Gate, GateSettings

gate = Gate(GateSettings.of({"success": [{"key": "survival", "min": 0.8, "window": "mean 3"}], "required": 2}))
decision = gate.observe(iteration, {"survival": 0.83}, stage="main")
if decision.state == "advance":
    ...
"""

from muster.stages.alarms import Alarm, Watch
from muster.stages.gate import Gate
from muster.stages.gate_decision import Decision
from muster.stages.gate_settings import GateSettings
from muster.stages.notation import GateError, SpecError
from muster.stages.schedule import Curriculum, Cycler, Schedule, Stage

__all__ = [
    "Alarm",
    "Curriculum",
    "Cycler",
    "Decision",
    "Gate",
    "GateError",
    "GateSettings",
    "Schedule",
    "SpecError",
    "Stage",
    "Watch",
]
