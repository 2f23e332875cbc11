"""Gates: the names in them must stand for something. Whether what they ask for is possible, `check` looks into."""

from __future__ import annotations

from muster.domain.errors import Mistake
from muster.spec.document import Scalar, dotted
from muster.spec.fields import closest
from muster.spec.lint import Lint
from muster.spec.model_gate import Gate, settings_of
from muster.stages.schedule import Schedule


def lint_gates(lint: Lint) -> None:
    for key in lint.whole.keys(("gates",)):
        _job(lint, key.text)
    for name, gate in lint.model.gates.items():
        _let(lint, name, gate)
        if gate.schedule:
            _stages(lint, name, gate, list(Schedule.of(gate.schedule).types))


def _job(lint: Lint, name: str) -> None:
    """As it is written: it may be wrong in a gate that is wrong elsewhere too."""
    path = ("gates", name, "job")
    job = lint.whole.get(path)
    if isinstance(job, Scalar) and isinstance(job.value, str) and job.text not in lint.jobs:
        hint = closest(job.text, lint.jobs) or (f"known: {', '.join(lint.jobs)}" if lint.jobs else "there is none")
        lint.mistakes.append(Mistake(f"there is no job '{job.text}'", *lint.whole.place(path), hint, dotted(path)))


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
