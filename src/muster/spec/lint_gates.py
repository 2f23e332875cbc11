"""Gates: the names in them must stand for something. Whether what they ask for is possible, `check` looks into."""

from __future__ import annotations

from muster.spec.lint import Lint
from muster.spec.model_gate import Gate, settings_of
from muster.stages.schedule import Schedule


def lint_gates(lint: Lint) -> None:
    for name, gate in lint.model.gates.items():
        if gate.job not in lint.jobs:
            lint.unknown(("gates", name, "job"), f"there is no job '{gate.job}'", gate.job, lint.jobs)
        _let(lint, name, gate)
        if gate.schedule:
            _stages(lint, name, gate, list(Schedule.of(gate.schedule).types))


def _let(lint: Lint, name: str, gate: Gate) -> None:
    for at, job in enumerate(gate.lets):
        path = ("gates", name, "lets", at)
        if job not in lint.jobs:
            lint.unknown(path, f"there is no job '{job}'", job, lint.jobs)
        elif job in lint.model.jobs and gate.job not in lint.model.jobs[job].needs:
            hint = f"write `needs: [{gate.job}]` under jobs.{job}"
            lint.add(path, f"the job '{job}' does not need '{gate.job}': no gate of it can let it start", hint)


def _stages(lint: Lint, name: str, gate: Gate, known: list[str]) -> None:
    for stage in settings_of(gate).stages():
        if stage not in known:
            what = f"a setting for the stage '{stage}', which the schedule does not have"
            lint.unknown(("gates", name), what, stage, known, key=True)
