"""What comes out of a right campaign file, and that nothing but CampaignInvalid comes out of a wrong one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.campaign import (
    Campaign,
    CheckpointProof,
    DeclaredProgress,
    DeclaredResult,
    LoopStop,
    MetricLimit,
    Money,
    Slots,
    SlotUse,
    StepProof,
)
from muster.model.cell import list_campaign_cells
from muster.model.errors import CampaignInvalid
from muster.spec import json_schema, read_campaign, reference_markdown
from muster.spec.campaign_templates import agents_md, template_names, template_text
from muster.spec.read_yaml import read_yaml_document
from muster.spec.yaml_tree import Items, Node, Table

HERE = Path(__file__).parent
INTERFACE = (HERE / "interface.yaml").read_text(encoding="utf-8")  # the example of the interface, word for word
HEAD = "muster: 1\ncampaign: c\n"


def campaign(text: str, folder: str = "/home/me/sprint") -> Campaign:
    parsed = read_campaign(text, file="campaign.yaml", folder=folder)
    assert [each for each in parsed.warnings if "loop's configs" not in each.message] == []  # the example has all keys
    return parsed.campaign


def test_the_example_of_the_interface() -> None:
    found = campaign(INTERFACE)
    assert (found.name, found.language, found.env) == ("paper-sprint", "zh", {"MUJOCO_GL": "egl"})
    assert found.slots == Slots(None, 1, 2)
    assert found.money == Money(1.98, "CNY", "gpu", 200, 200, "2026-02-22T02:00+08:00", "hold")
    assert len(list_campaign_cells(found)) == 10 + 20 + 1
    train = found.job("train")
    assert train.command[:4] == ("python", "SafeDreamer/train.py", "{config.args}", "--method")
    assert train.within == ("conda", "run", "--no-capture-output", "-n", "safedreamer")
    assert train.cwd == "/home/me/SafeDreamer_v2"
    assert train.resume == ("python", "train.py", "--from", "{last.checkpoint}", "...")
    assert train.uses == SlotUse(1, 1)
    assert train.progress == (
        DeclaredProgress("jsonl", "metrics.jsonl", "step", 1000.0, 0.2),
        DeclaredProgress("files", "replay/*.npz"),
        DeclaredProgress("checkpoint", "checkpoint.ckpt"),
    )
    assert train.proof.step == StepProof("{steps}", 0.02)
    assert train.proof.checkpoint == CheckpointProof("checkpoint.ckpt", 0.9)
    assert train.results == (DeclaredResult("risk_penalty", "jsonl", "metrics.jsonl", "train/risk_penalty", "last"),)
    assert (train.steps, train.max_retries, train.grace_s, train.timeout_s) == (120000, 3, 3600, 43200)
    assert found.job("plots").uses == SlotUse(0, None)
    assert found.axis("split").values[1].proxy == "hallu.level=2 stands for out-of-distribution"
    assert found.decision is not None
    assert found.decision.limit == MetricLimit("cost", "ood", max=25)
    assert found.loop is not None
    assert found.loop.stop == LoopStop(no_gain=2)
    assert found.gates is not None
    assert found.gates["penalty"].tolerance == {"default": 2, "main": 3}
    assert found.finish is not None
    assert found.finish.run == ("rclone copy reports remote:sprint",)


def test_defaults() -> None:
    found = campaign(HEAD + "jobs: {t: {command: run}}\n")
    assert found.slots == Slots(None, 1, 1)
    assert found.money is found.decision is found.loop is found.gates is found.finish is None
    job = found.job("t")
    assert (job.axes, job.output, job.cwd, job.mkdir, job.max_retries) == ((), "{out}", None, True, 3)
    assert job.uses == SlotUse(None, None)
    assert not job.proof


def test_axis_values_keep_their_spelling_and_their_type() -> None:
    found = campaign(HEAD + "axes: {lr: [1e-4, 3, 'no', true, a/b]}\njobs: {t: {axes: [lr], command: 'run {lr}'}}\n")
    values = found.axis("lr").values
    assert [value.name for value in values] == ["1e-4", "3", "no", "true", "a/b"]
    assert [value.value for value in values] == [1e-4, 3, "no", True, "a/b"]
    assert list_campaign_cells(found)[-1].id == "t/a%2Fb"


def test_commands_as_text_list_and_shell() -> None:
    found = campaign(
        HEAD + "jobs:\n"
        "  text: {command: \"run 'a b' {out}\"}\n"
        "  words: {command: [run, a b, 3]}\n"
        '  shell: {command: "run | tee {out}/log", shell: true}\n'
        "  lines:\n    command: |\n      run \\\n        --a 1\n"
    )
    assert found.job("text").command == ("run", "a b", "{out}")
    assert found.job("words").command == ("run", "a b", "3")
    assert found.job("shell").command == ("run | tee {out}/log",)
    assert found.job("lines").command == ("run", "--a", "1")


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("45m", 2700), ("12h", 43200), ("2d", 172800), ("1h30m", 5400), ("1.5h", 5400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert campaign(HEAD + f"jobs: {{t: {{command: run, timeout: {text}}}}}\n").job("t").timeout_s == seconds


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), ("0.02", 0.02), ("0", 0), ("100%", 1)])
def test_shares(text: str, share: float) -> None:
    job = f"{{command: run, progress: [{{csv: p}}], proof: {{step: {{min: 5, within: {text}}}}}}}"
    proof = campaign(HEAD + f"jobs: {{t: {job}}}\n").job("t").proof
    assert proof.step == StepProof("5", share)


@pytest.mark.parametrize(("text", "gpus"), [("auto", None), ("0", ()), ("[]", ()), ("[0, 6]", (0, 6))])
def test_gpus(text: str, gpus: tuple[int, ...] | None) -> None:
    assert campaign(HEAD + f"slots: {{gpus: {text}}}\njobs: {{t: {{command: run}}}}\n").slots.gpus == gpus


def test_env_values_stay_as_written() -> None:
    found = campaign(HEAD + "env: {A: 010, B: 1e5, C: 'true', D: x}\njobs: {t: {command: run}}\n")
    assert found.env == {"A": "010", "B": "1e5", "C": "true", "D": "x"}


def test_anchors_and_merges() -> None:
    found = campaign(HEAD + "jobs:\n  a: &base {command: run, steps: 5}\n  b: {<<: *base, steps: 6}\n")
    assert [(job.command, job.steps) for job in found.jobs] == [(("run",), 5), (("run",), 6)]


def test_the_loops_job_has_a_variant() -> None:
    text = HEAD + (
        "jobs: {t: {command: 'run {config_file} {variant}'}}\n"
        "loop: {job: t, base: [a.json], default: {edit: ['a.*.b@set=1'], reason: r}}\n"
    )
    assert campaign(text).loop is not None


@pytest.mark.parametrize("name", template_names())
def test_templates_are_right(name: str) -> None:
    found = campaign(template_text(name))
    assert found.name == name
    assert list_campaign_cells(found)


def test_agents_md_names_the_commands_and_codes() -> None:
    text = agents_md()
    for part in ("muster status --json", "muster why CELL --json", "muster wait --timeout 10m --json", "Never"):
        assert part in text
    assert all(f"| {code} |" in text for code in range(5))


def test_unknown_template() -> None:
    with pytest.raises(KeyError):
        template_text("../secrets")


def test_the_reference_is_up_to_date() -> None:
    page = HERE.parents[2] / "docs" / "campaign.md"
    hint = "regenerate it: python -m muster.spec.reference > docs/campaign.md"
    assert page.read_text(encoding="utf-8") == reference_markdown(), hint


def _values(node: Node) -> object:
    if isinstance(node, Table):
        return {key.text: _values(value) for key, value in node.entries}
    return [_values(item) for item in node.items] if isinstance(node, Items) else node.value


@pytest.mark.parametrize("text", [INTERFACE, *(template_text(name) for name in template_names())])
def test_the_schema_takes_what_the_reader_takes(text: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document, _ = read_yaml_document(text)
    assert document is not None
    jsonschema.Draft202012Validator.check_schema(json_schema())
    errors = jsonschema.Draft202012Validator(json_schema()).iter_errors(_values(document.root))
    assert [error.message for error in errors] == []


def _keys(schema: object) -> list[tuple[str, dict[str, object]]]:
    if isinstance(schema, list):
        return [key for item in schema for key in _keys(item)]
    if not isinstance(schema, dict):
        return []
    properties = schema.get("properties")
    found = list(properties.items()) if isinstance(properties, dict) else []
    return found + [key for item in schema.values() for key in _keys(item)]


def test_the_schema_describes_every_key() -> None:
    schema = json_schema()
    keys = _keys(schema)
    assert len(keys) > 100
    # a key that says no more than its mapping does is described there
    kinds = cast(dict[str, dict[str, object]], schema["$defs"])
    referred = {f"#/$defs/{name}": kind.get("description") for name, kind in kinds.items()}
    assert [name for name, key in keys if not (key.get("description") or referred.get(str(key.get("$ref"))))] == []


def test_the_schema_refuses_a_misspelt_key() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    data = {"muster": 1, "campaign": "c", "jobs": {"t": {"comand": "run"}}}
    messages = [error.message for error in jsonschema.Draft202012Validator(json_schema()).iter_errors(data)]
    assert any("comand" in message for message in messages)


def test_ten_thousand_cells_take_about_a_second() -> None:
    values = ", ".join(map(str, range(100)))
    text = HEAD + (
        f"axes: {{a: [{values}], b: [{values}]}}\n"
        "jobs:\n"
        "  t: {axes: [a, b], exclude: [{a: 3, b: 4}], output: 'runs/*_{a}_*_{b}', command: run}\n"
    )
    campaign(HEAD + "jobs: {t: {command: run}}\n")  # the imports
    start = time.process_time()
    assert len(list_campaign_cells(campaign(text))) == 9999
    assert time.process_time() - start < 5  # 0.4 s on a quiet machine


def test_importing_the_room_does_not_import_pydantic() -> None:
    code = "import sys, muster.spec, muster.spec.campaign_templates as t; t.template_text('sprint'); sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0


def only_campaign_invalid(text: str) -> None:
    try:
        read_campaign(text, file="campaign.yaml", folder="/c")
    except CampaignInvalid as error:
        found = error.mistakes
    else:
        return
    assert found
    assert list(found) == sorted(found, key=lambda item: (item.line, item.column, item.message))
    assert all(mistake.line >= 1 and mistake.column >= 1 and mistake.message for mistake in found)


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text(text: str) -> None:
    only_campaign_invalid(text)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_any_cut_and_paste_of_the_example(data: st.DataObject) -> None:
    text = INTERFACE
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 30)))
        text = text[:start] + data.draw(st.text(alphabet="{}[]:,'\"-&*!|>%@#~ \n\tab01_.", max_size=6)) + text[end:]
    only_campaign_invalid(text)


SCALARS = [
    "~",
    "no",
    "1e5",
    "010",
    "1.0",
    "-1",
    "''",
    "'{x}'",
    "[]",
    "{}",
    "[1]",
    "{a: 1}",
    "99999999999999999999",
    ".inf",
    "x",
    "0s",
    "5%",
]


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_any_value_anywhere(data: st.DataObject) -> None:
    """Each line of the example with its value exchanged: every key meets every kind of value."""
    lines = INTERFACE.split("\n")
    for _ in range(data.draw(st.integers(1, 6))):
        index = data.draw(st.integers(0, len(lines) - 2))
        key, colon, _ = lines[index].partition(":")
        if colon and not key.strip().startswith(("#", "-")):
            lines[index] = f"{key}: {data.draw(st.sampled_from(SCALARS))}"
    only_campaign_invalid("\n".join(lines))
