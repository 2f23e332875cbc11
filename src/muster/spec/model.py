"""The campaign file as pydantic models: every key with its kind, default, meaning and example.

Messages, JSON schema and the reference are all made from here. What depends on several keys is in the lint modules.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainValidator, Tag, WithJsonSchema, model_validator

from muster.spec.base import Model, field, forms
from muster.spec.document import Scalar
from muster.spec.fields import (
    LIST,
    MAP,
    AxisScalar,
    Edit,
    Loose,
    Moment,
    Number,
    Shown,
    Size,
    Text,
    Whole,
    choice,
    expected,
    read_whole,
    wrong,
)
from muster.spec.model_after import Decision, Finish, Loop, Notice, Report
from muster.spec.model_gate import Gate
from muster.spec.model_job import Env, Job

WANDB_MODES = ("offline", "online", "disabled")


def _null_is_empty(value: object) -> object:
    return {} if isinstance(value, Scalar) and value.value is None else value


def _read_gpus(value: object) -> tuple[int, ...] | None:
    kind = "auto, a list of GPU indexes such as [0, 1], or 0"
    if isinstance(value, list):
        gpus = tuple(read_whole(item) for item in value)
        if any(gpu < 0 for gpu in gpus):
            raise wrong("a GPU index is negative")
        if len(set(gpus)) < len(gpus):
            raise wrong("a GPU is listed twice")
        return gpus
    if isinstance(value, Scalar) and value.text == "auto":
        return None
    if isinstance(value, Scalar) and value.value == 0 and not isinstance(value.value, bool):
        return ()
    if isinstance(value, Scalar) and isinstance(value.value, int) and not isinstance(value.value, bool):
        count = max(0, min(value.value, 8))
        raise expected(kind, value, f"name the GPUs: {list(range(count))}" if count else "")
    raise expected(kind, value)


_GPUS_SCHEMA: dict[str, Any] = {
    "anyOf": [{"const": "auto"}, {"const": 0}, {"type": "array", "items": {"type": "integer", "minimum": 0}}]
}


class ValueSettings(Model):
    """What one value of an axis adds."""

    args: Loose = field(
        "", "The text behind `{axis.args}` in commands; split into words as a shell would.", "--configs v2_full"
    )
    env: Env = field({}, "Environment variables of the cells with this value.", "{WANDB_TAGS: full}")
    edits: list[Edit] = field(
        [],
        "Edits of the job's `config`, as in `loop.rules`: each combination gets its own file, for `{config_file}`.",
        '["ot.lambda_ot@set=0.12"]',
    )
    note: Loose = field("", "A remark that goes wherever this value is reported.", "the held-out rooms")
    proxy: Loose = field(
        "",
        "Of a split: what it stands for. Reports then call it a proxy, and every claim about it names that.",
        "hallu.level=2 stands for out-of-distribution",
    )


AxisSettings = Annotated[ValueSettings, BeforeValidator(_null_is_empty)]
Axis = Annotated[
    Annotated[list[AxisScalar], Tag(LIST)] | Annotated[dict[str, AxisSettings], Tag(MAP)],
    forms("a list of values, or a mapping value -> settings", "write a list: [0, 1, 2]"),
    Shown("list of values, or mapping value -> [settings](#valuesettings)"),
]


Gpus = Annotated[
    tuple[int, ...] | None,
    PlainValidator(_read_gpus),
    WithJsonSchema(_GPUS_SCHEMA),
    Shown("`auto`, list of indexes, or 0"),
]


class Slots(Model):
    """Where runs may go."""

    gpus: Gpus = field(
        None,
        "`auto` (all that nobody else uses), a list of indexes, or 0 for none. With `auto` on a machine without a GPU "
        "cells run on CPU slots, and `muster check` warns of it.",
        "[0, 1, 6, 7]",
    )
    per_gpu: Whole = field(1, "Cells that share one GPU.", "2", ge=1)
    cpus: Whole = field(1, "Cells that run at once without a GPU.", "2", ge=0)


class Money(Model):
    """What a slot costs and how much there is."""

    price: Number = field(0.0, "Price of one hour. A changed one holds from the next `muster up` on.", "1.98", ge=0)
    currency: Text = field("CNY", "Printed beside every amount.", "CNY")
    per: Annotated[Literal["gpu", "machine"], BeforeValidator(choice("gpu", "machine"))] = field(
        "gpu",
        "`gpu`: each GPU is billed while a run holds it (each slot, where the campaign has no GPU); `machine`: the "
        "machine is billed from `since` on, whatever runs.",
        "machine",
    )
    budget: Number | None = field(
        None, "The most that may be spent: a cell that it would not cover does not start.", "200", ge=0
    )
    paid: Number | None = field(None, "What was really paid, to compare with the accounts.", "200", ge=0)
    since: Moment | None = field(None, "When the rent of the machine began.", "2026-02-22T02:00+08:00")
    at_cap: Annotated[Literal["hold", "stop"], BeforeValidator(choice("hold", "stop"))] = field(
        "hold", "At the budget: start nothing new (`hold`), or stop the runs too (`stop`).", "stop"
    )

    @model_validator(mode="after")
    def _budget_needs_a_price(self) -> Money:
        if self.budget is not None and not self.price:
            raise wrong("a budget without a price can't be enforced", "add the price of one hour")
        return self


class Wandb(Model):
    """How runs use W&B: offline, with its cache in `.muster/wandb` and each run's files in its own output."""

    mode: Annotated[Literal["offline", "online", "disabled"], BeforeValidator(choice(*WANDB_MODES))] = field(
        "offline", "`offline`: files only, nothing is sent; `online`: they are sent, too.", "online"
    )
    entity: Text | None = field(None, "The account or team that online runs belong to.", "my-lab")
    project: Text | None = field(None, "The project of the runs.", "act-ot")


class Logs(Model):
    """What becomes of the logs of a run that writes without end."""

    max: Size = field(
        ...,
        "What each of an attempt's two logs may take on the disk. A longer one loses its middle at the next look at "
        "the run: a quarter of this stays of its beginning and at least half of it of its end. Between two looks a "
        "fast log may take more, and one of a run that ends before the next look is not cut. The run notices nothing.",
        "1G",
    )


class CampaignFile(Model):
    """The whole file."""

    muster: Whole = field(..., "Version of this format; always 1.", "1")
    campaign: Text = field(..., "Name of the campaign.", "paper-sprint")
    language: Annotated[Literal["zh", "en"], BeforeValidator(choice("zh", "en"))] = field(
        "en", "Language of the reports.", "zh"
    )
    axes: dict[str, Axis] = field(
        {}, "Axes by name: a list of values, or a mapping value -> settings.", "{seed: [0, 1, 2, 3, 4]}"
    )
    env: Env = field({}, "Environment variables of every job.", "{MUJOCO_GL: egl}")
    slots: Slots = field(Slots(), "Where runs may go.", "{gpus: auto, per_gpu: 1, cpus: 2}")
    money: Money | None = field(
        None, "Price and budget, for `cost`, `status` and `plan`.", "{price: 1.98, budget: 200}"
    )
    logs: Logs | None = field(
        None, "Where logs are cut. Without it none ever is; `status` tells of one beyond 1 GB.", "{max: 1G}"
    )
    wandb: Wandb | None = field(
        None, "How runs use W&B. A campaign with a loop has it even unsaid: offline.", "{mode: online, project: act-ot}"
    )
    jobs: dict[str, Job] = field(..., "Jobs by name.", "{train: {axes: [seed], command: python train.py}}")
    decision: Decision | None = field(
        None, "What is decided from the finished matrix; declared before anything runs.", ""
    )
    report: Report | None = field(None, "Tables and documents.", "{columns: [id/score, ood/score]}")
    loop: Loop | None = field(None, "Rounds of proposed configs.", "")
    gates: dict[str, Gate] = field({}, "Decisions over the metric stream of a run, by name.", "")
    notify: list[Notice] = field(
        [],
        "Whom to tell of deaths, stalls and ends: `{run: COMMAND}` gets each notice as JSON on stdin.",
        "[{run: ./tell.sh}]",
    )
    finish: Finish | None = field(None, "What to do when all is done.", "{report: true, shutdown: false}")
