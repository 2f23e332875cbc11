"""Every example and every default on the page of the campaign file passes the check that the page is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.model.errors import CampaignInvalid
from muster.spec import read_campaign

PAGE = Path(__file__).parents[3] / "docs" / "campaign.md"
FILE = {
    "muster": "1",
    "campaign": "c",
    "axes": "{config: [v2_baseline, v2_full], seed: [0, 1, 2, 3, 4], split: [id, ood]}",
    "jobs": "{train: {axes: [config, seed], config: c.json, command: 'python t.py {config_file}', results: {risk_penalty: {json: r.json, key: k}}}, "
    "eval: {axes: [config, seed, split], needs: [train], command: python e.py, "
    "results: {score: {json: r.json, key: k}, cost: {json: r.json, key: k}}}}",
}
AXES = ["seed: [0, 1, 2, 3, 4]", "split: [id, ood]"]
EVAL = "eval: {axes: [config, seed, split], needs: [other], command: c, results: {score: {json: r, key: k}}}"
OTHERS = [EVAL, "train: {axes: [config, seed], command: c, results: {risk_penalty: {json: r, key: k}}}"]
JOB = {
    "axes": "[config, seed]",
    "command": "python t.py {config_file}",
    "steps": "10",
    "progress": "[{jsonl: m.jsonl, step: step}]",
}
DECISION = {"primary": "{metric: score, split: ood, better: higher}", "baseline": "v2_baseline"}
# section -> where its keys stand; what stands beside them, so that names in examples stand for something
PLACES: dict[str, str] = {
    "The file": "", "ValueSettings": "axes.config.v2_full", "Slots": "slots", "Money": "money", "Logs": "logs", "Wandb": "wandb", "Job": "jobs.other",
    "Uses": "jobs.other.uses", "Progress": "jobs.other.progress.0", "Proof": "jobs.other.proof",
    "StepProof": "jobs.other.proof.step", "CheckpointProof": "jobs.other.proof.checkpoint",
    "Result": "jobs.other.results.score", "At": "jobs.other.results.cost.reduce",
    "Best": "jobs.other.results.cost.reduce.at", "Retry": "jobs.other.retry", "Decision": "decision",
    "Primary": "decision.primary", "Limit": "decision.limit", "BestBy": "decision.checkpoint", "Report": "report",
    "Loop": "loop", "Keep": "loop.keep", "Rule": "loop.rules.0", "DefaultRule": "loop.default", "Stop": "loop.stop", "Prune": "loop.prune",
    "Search": "loop.search", "Dimension": "loop.search.space.lr",
    "Gate": "gates.penalty", "Freeze": "gates.penalty.freeze", "GateRead": "gates.penalty.read", "Criterion": "gates.penalty.success.0",
    "Bounds": "gates.penalty.success.0.by_stage.main", "Finish": "finish",
}  # fmt: skip
ELSEWHERE = {("ValueSettings", "proxy"): "axes.split.far"}  # keys that make no sense where the others stand


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Section, key, `default` or `example`, and the value as the page shows it."""
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| `"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            key, _, default, _, example = cells
            for name, shown in (("default", default), ("example", example)):
                if shown.startswith("`"):
                    yield section, key.strip("`"), name, shown[1:-1]


def written(place: str, key: str, value: str) -> str:
    """A campaign with this key in its place."""
    parts = [part for part in place.split(".") if part]
    lines = [f"{name}: {text}" for name, text in FILE.items() if name != (parts or [key])[0]]
    indent, dash = 0, ""
    for depth, part in enumerate(parts):
        if part == "0":
            dash = "- "
            continue
        lines.append(f"{' ' * indent}{dash}{part}:")
        indent, dash = indent + 2 + len(dash), ""
        if not depth:
            others = {"axes": AXES, "jobs": OTHERS}.get(part, [])
            lines += [f"{' ' * indent}{line}" for line in others if not line.startswith(f"{(*parts, key)[1]}:")]
        after = (*parts, key)[depth + 1]
        beside = {"other": JOB, "decision": DECISION}.get(part, {})
        lines += [f"{' ' * indent}{name}: {text}" for name, text in beside.items() if name != after]
    return "\n".join([*lines, f"{' ' * indent}{dash}{key}: {value}", ""])


def complaints(place: str, key: str, value: str) -> list[str]:
    """What is wrong with the value itself."""
    path = f"{place}.{key}".strip(".")
    try:
        read_campaign(written(place, key, value), file="campaign.yaml", folder="/home/me/sprint")
    except CampaignInvalid as invalid:
        return [m.message for m in invalid.mistakes if m.path == path or m.path.startswith(f"{path}.") or not m.path]
    return []


ROWS = list(rows())


def test_every_section_of_the_page_is_looked_at() -> None:
    assert {section for section, *_ in ROWS} == set(PLACES)
    assert len(ROWS) > 150


@pytest.mark.parametrize(("section", "key", "kind", "value"), ROWS, ids=[f"{s}.{k}-{d}" for s, k, d, _ in ROWS])
def test_it_passes(section: str, key: str, kind: str, value: str) -> None:
    place = ELSEWHERE.get((section, key), PLACES[section])
    assert complaints(place, key, value) == [], (kind, written(place, key, value))


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("Finish", "countdown", "60"),
        ("Job", "output", "{out}"),
        ("Job", "needs", "[trian]"),
        ("Progress", "every", "1000"),
        ("Result", "stdout", "'score: [0-9]+'"),
        ("Best", "best", "[score]"),
        ("Bounds", "window", "median"),
        ("Decision", "baseline", "nobody"),
        ("Report", "columns", "[score]"),
    ],
)
def test_what_is_wrong_would_be_seen(section: str, key: str, value: str) -> None:
    assert complaints(PLACES[section], key, value)
