"""Lints `gates:`: names in them must stand for something. Also reads the gate file of `muster gates replay --with
FILE`; every mistake with its line.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import ValidationError

from muster.model.campaign import GateRules
from muster.model.errors import CampaignInvalid, Mistake
from muster.spec.field_kinds import FileModel, build_section, suggest_closest
from muster.spec.lint_context import LintContext
from muster.spec.model_gate import Gate, Rules, gate_settings_of
from muster.spec.read_yaml import read_yaml_document
from muster.spec.validate_model import mistakes_of_validation
from muster.spec.yaml_tree import Node, Scalar, Table, YamlDocument, dotted_path, node_as_data
from muster.stages.schedule import Schedule


def lint_gates(lint: LintContext) -> None:
    for key in lint.whole.keys(("gates",)):
        _lint_gate_job(lint, key.text)
    for name, gate in lint.model.gates.items():
        _lint_let_jobs(lint, name, gate)
        if gate.schedule:
            _lint_gate_stages(lint, name, gate, list(Schedule.of(gate.schedule).types))


def _lint_gate_job(lint: LintContext, name: str) -> None:
    """As it is written: it may be wrong in a gate that is wrong elsewhere too."""
    path = ("gates", name, "job")
    job = lint.whole.get(path)
    if isinstance(job, Scalar) and isinstance(job.value, str) and job.text not in lint.jobs:
        hint = suggest_closest(job.text, lint.jobs) or (
            f"known: {', '.join(lint.jobs)}" if lint.jobs else "there is none"
        )
        lint.mistakes.append(Mistake(f"there is no job '{job.text}'", *lint.whole.place(path), hint, dotted_path(path)))


def _lint_let_jobs(lint: LintContext, name: str, gate: Gate) -> None:
    for at, job in enumerate(gate.lets):
        path = ("gates", name, "lets", at)
        if job not in lint.jobs:
            lint.unknown(path, f"there is no job '{job}'", job, lint.jobs)
        elif job in lint.model.jobs and gate.job not in lint.model.jobs[job].needs:
            hint = f"write `needs: [{gate.job}]` under jobs.{job}"
            lint.add(path, f"the job '{job}' does not need '{gate.job}': no gate of it can let it start", hint)


def _lint_gate_stages(lint: LintContext, name: str, gate: Gate, known: list[str]) -> None:
    for stage in gate_settings_of(gate).stages():
        if stage not in known:
            what = f"a setting for the stage '{stage}', which the schedule does not have"
            lint.unknown(("gates", name), what, stage, known, key=True)


_GATE_FILE_HINT = "it may be the settings themselves, `NAME: {success: ...}`, or a campaign file with one gate"


class _Declared(FileModel):
    gates: dict[str, Gate]


class _Alone(FileModel):
    gates: dict[str, Rules]


def read_gate_file(text: str, *, file: str, name: str = "") -> GateRules:
    """As `campaign.gates` holds them; raises CampaignInvalid with all mistakes. `name`: which, of several."""
    document, mistakes = read_yaml_document(text)
    if document is None or mistakes:
        raise CampaignInvalid(file, tuple(mistakes))
    gates = _gates_table(document.root)
    chosen = [entry for entry in gates.entries if name in ("", entry[0].text)]
    if len(chosen) != 1:
        known = ", ".join(key.text for key, _ in gates.entries)
        what = f"there is no gate '{name}'" if name else f"it has {len(gates.entries)} gates, and one is needed"
        raise CampaignInvalid(file, (Mistake(what, hint=f"its gates: {known}" if known else _GATE_FILE_HINT),))
    return _validate_gate(
        replace(document, root=_single_entry_table("gates", replace(gates, entries=tuple(chosen)))), file
    )


def _gates_table(root: Node) -> Table:
    """Whichever of the three forms it is: a mapping from names to gates."""
    if not isinstance(root, Table):
        return _single_entry_table("gate", root)
    declared = root.get("gates")
    if declared and isinstance(declared[1], Table):
        return declared[1]
    named = all(
        isinstance(value, Table) and (value.get("success") or value.get("failure")) for _, value in root.entries
    )
    return root if named and root.entries else _single_entry_table("gate", root)


def _single_entry_table(name: str, value: Node) -> Table:
    key = Scalar(name, name, False, value.line, value.column)
    return Table(((key, value),), value.line, value.column)


def _validate_gate(document: YamlDocument, file: str) -> GateRules:
    (_, gates) = document.root.entries[0] if isinstance(document.root, Table) else (None, document.root)
    gate = gates.entries[0][1] if isinstance(gates, Table) else None
    whole = isinstance(gate, Table) and gate.get("job") is not None
    try:
        model = (_Declared if whole else _Alone).model_validate(node_as_data(document.root))
    except ValidationError as error:
        raise CampaignInvalid(file, tuple(mistakes_of_validation(error, document))) from None
    rules: GateRules = build_section(next(iter(model.gates.values())))
    return rules
