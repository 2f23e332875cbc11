"""What staged trainings leave behind: the reference's evaluations, and made-up runs with everything in them."""

from __future__ import annotations

import json
import math
import random

from muster.stages import Curriculum, GateSettings, Schedule
from muster.stages.alarms import Watch
from muster.stages.replay import replay_gate
from muster.stages.traces import EvaluationRow, lines, schedule_trace, stage_summary

TABLE = """\
8 ne .716 .615 .117 83.0 .0208
16 ne .553 .417 .099 101.0 .0198
24 main .654 .573 .099 100.9 .0151
32 main .668 .594 .107 87.0 .0240
40 main .688 .552 .110 89.0 .0260
48 ne .721 .594 .105 95.0 .0219
56 main .768 .615 .094 108.9 .0198"""
KEYS = ("avg_final", "min_final", "early_death_100", "first_death_p10", "step_one_ratio")
ROWS = [
    EvaluationRow(int(at), dict(zip(KEYS, map(float, values), strict=True)), stage)
    for at, stage, *values in map(str.split, TABLE.splitlines())
]
SCHEDULE = Schedule.parse(
    "8:a.json|type=ne;6:a.json|type=ne;15:a.json|type=main;6:a.json|type=ne;24:b.json|type=main;16:b.json|type=main"
)
PENALTY = GateSettings.of(
    {
        "success": [
            {"key": "first_death_p10", "min": 70},
            {"key": "early_death_100", "max": 0.1, "by_stage": {"ne": {"max": 0.13}}},
            {"key": "step_one_ratio", "max": 0.02},
        ],
        "failure": [{"key": "first_death_p10", "below": 95}, {"key": "min_final", "below": 0.5}],
        "required": 2,
        "tolerance": {"default": 2, "main": 3},
    }
)
RISING = GateSettings.of(
    {
        "success": [
            {"key": "survival", "min": 0.7, "window": "mean 3", "by_stage": {"ne": {"min": 0.6}}},
            {"key": "early", "max": 0.12},
        ],
        "failure": [{"key": "survival", "below": 0.45}, {"key": "early", "above": 0.2, "window": "median 3"}],
        "required": 2,
        "freeze": {"advance": 4, "fall_back": 3},
        "tolerance": 1,
    }
)
NAN_AT = (15, 16, 48)


def objects(rows: list[EvaluationRow]) -> str:
    return "".join(json.dumps({"iter": row.iteration, "stage": row.stage, **row.values}) + "\n" for row in rows)


def reference() -> dict[str, str]:
    counts = [(at, SCHEDULE.stage_at(at).type, 2 + at % 4, 1920) for at in range(1, 61)]
    trained = [EvaluationRow(at, {"survival": 0.6 + at / 250, "first_death": 300.0 + at}) for at in range(1, 61)]
    curriculum = Curriculum.parse("15:9,20:10,25:41")
    trace = schedule_trace(SCHEDULE, 60, curriculum=curriculum, watch=Watch(0.3, 2))
    return {
        "gate_trace.jsonl": lines(PENALTY, replay_gate(PENALTY, ROWS), "penalty"),
        "eval_history.jsonl": objects(ROWS),
        "train.jsonl": objects(trained),
        "schedule_trace.json": json.dumps(trace),
        "stage_summary.json": json.dumps(stage_summary(counts)),
    }


def rows_of(count: int, stages: Schedule, seed: int = 1) -> list[EvaluationRow]:
    """It learns, breaks down, and recovers; some values are none."""
    chance = random.Random(seed)
    rows = []
    for at in range(1, count + 1):
        drop = 0.35 if 0.55 * count < at < 0.7 * count else 0.0
        risen = min(1.0, at / (0.3 * count))
        value = 0.5 + 0.3 * risen - drop + chance.gauss(0, 0.03)
        early = 0.2 - 0.1 * risen + 0.4 * drop + chance.gauss(0, 0.01)
        values = {"survival": math.nan if at in NAN_AT else value, "early": early}
        rows.append(EvaluationRow(at, values, stages.stage_at(at).type))
    return rows


def made_up(count: int = 60, names: tuple[str, ...] = ("ne", "main", "ne", "main")) -> dict[str, str]:
    stages = Schedule.parse(";".join(f"{count // len(names)}:a.json|type={name}" for name in names))
    rows = rows_of(count, stages)
    counts = [(row.iteration, row.stage, row.iteration % 7, 1000) for row in rows]
    evaluated = [
        EvaluationRow(
            row.iteration,
            {"avg_final": None if math.isnan(row.values["survival"]) else row.values["survival"]},
            row.stage,
        )
        for row in rows
    ]
    return {
        "gate_trace.jsonl": lines(RISING, replay_gate(RISING, rows)),
        "eval_history.jsonl": objects(evaluated),
        "schedule_trace.json": json.dumps(schedule_trace(stages, count, watch=Watch(0.3, 2))),
        "stage_summary.json": json.dumps(stage_summary(counts)),
    }


def one_row() -> dict[str, str]:
    return {
        "gate_trace.jsonl": lines(PENALTY, replay_gate(PENALTY, ROWS[:1]), "penalty"),
        "eval_history.jsonl": objects(ROWS[:1]),
        "stage_summary.json": json.dumps(stage_summary([(8, "ne", 3, 10)])),
    }


def many_keys() -> dict[str, str]:
    names = [f"a_metric_with_a_rather_long_name_{at}" for at in range(8)]
    settings = GateSettings.of({"success": [{"key": name, "min": 0.5, "window": "mean 3"} for name in names]})
    rows = [EvaluationRow(at, dict.fromkeys(names, at / 9), "") for at in range(1, 9)]
    return {"gate_trace.jsonl": lines(settings, replay_gate(settings, rows), "一个名字")}


def no_schedule() -> dict[str, str]:
    return {name: text for name, text in reference().items() if name != "schedule_trace.json"}


def no_labels() -> dict[str, str]:
    rows = [row._replace(stage="") for row in ROWS]
    return {"gate_trace.jsonl": lines(PENALTY, replay_gate(PENALTY, rows)), "eval_history.jsonl": objects(rows)}


def all_wrong() -> dict[str, str]:
    rows = [EvaluationRow(at, {"survival": 0.5}, "a stage that nobody declared") for at in range(1, 61)]
    trace = json.dumps(schedule_trace(SCHEDULE, 60))
    counts = [(row.iteration, row.stage, 1, 10) for row in rows]
    return {
        "eval_history.jsonl": objects(rows),
        "schedule_trace.json": trace,
        "stage_summary.json": json.dumps(stage_summary(counts)),
    }


SCENES = {
    "reference": reference,
    "made up": made_up,
    "600 rows": lambda: made_up(600),
    "ten stages": lambda: made_up(600, tuple("stage_number_" + letter for letter in "abcdefghij") * 3),
    "chinese names": lambda: made_up(60, ("北侧", "主段", "北侧", "主段")),
    "one row": one_row,
    "many keys": many_keys,
    "no schedule": no_schedule,
    "no labels": no_labels,
    "all wrong": all_wrong,
}
