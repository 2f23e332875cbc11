"""The campaign file as pydantic models: every key with its kind, default, meaning and example.

Messages, JSON schema and the reference are all made from here. What depends on several keys is in the lint modules.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainValidator, Tag, WithJsonSchema, model_validator

from muster.model import campaign as model
from muster.spec.field_kinds import (
    LIST,
    MAP,
    AxisScalar,
    Edit,
    FileModel,
    KindName,
    Loose,
    Moment,
    Number,
    Size,
    Text,
    Whole,
    discriminate_forms,
    expected_error,
    file_key,
    one_of_reader,
    read_whole_number,
    value_error,
)
from muster.spec.model_decision_loop_finish import Decision, Finish, Loop, Notice, Report
from muster.spec.model_gate import Gate
from muster.spec.model_job import Env, JobSection
from muster.spec.yaml_tree import Scalar

WANDB_MODES = ("offline", "online", "disabled")


def _null_as_empty(value: object) -> object:
    return {} if isinstance(value, Scalar) and value.value is None else value


def _read_gpu_list(value: object) -> tuple[int, ...] | None:
    kind = "auto, a list of GPU indexes such as [0, 1], or 0"
    if isinstance(value, list):
        gpus = tuple(read_whole_number(item) for item in value)
        if any(gpu < 0 for gpu in gpus):
            raise value_error("a GPU index is negative")
        if len(set(gpus)) < len(gpus):
            raise value_error("a GPU is listed twice")
        return gpus
    if isinstance(value, Scalar) and value.text == "auto":
        return None
    if isinstance(value, Scalar) and value.value == 0 and not isinstance(value.value, bool):
        return ()
    if isinstance(value, Scalar) and isinstance(value.value, int) and not isinstance(value.value, bool):
        count = max(0, min(value.value, 8))
        raise expected_error(kind, value, f"name the GPUs: {list(range(count))}" if count else "")
    raise expected_error(kind, value)


_GPUS_SCHEMA: dict[str, Any] = {
    "anyOf": [{"const": "auto"}, {"const": 0}, {"type": "array", "items": {"type": "integer", "minimum": 0}}]
}


class ValueSettings(FileModel):
    """What one value of an axis adds."""

    args: Loose = file_key(
        "", "The text behind `{axis.args}` in commands; split into words as a shell would.", "--configs v2_full"
    )
    env: Env = file_key({}, "Environment variables of the cells with this value.", "{WANDB_TAGS: full}")
    edits: list[Edit] = file_key(
        [],
        "Edits of the job's `config`, as in `loop.rules`: each combination gets its own file, for `{config_file}`.",
        '["ot.lambda_ot@set=0.12"]',
    )
    note: Loose = file_key("", "A remark that goes wherever this value is reported.", "the held-out rooms")
    proxy: Loose = file_key(
        "",
        "Of a split: what it stands for. Reports then call it a proxy, and every claim about it names that.",
        "hallu.level=2 stands for out-of-distribution",
    )


AxisSettings = Annotated[ValueSettings, BeforeValidator(_null_as_empty)]
Axis = Annotated[
    Annotated[list[AxisScalar], Tag(LIST)] | Annotated[dict[str, AxisSettings], Tag(MAP)],
    discriminate_forms("a list of values, or a mapping value -> settings", "write a list: [0, 1, 2]"),
    KindName("list of values, or mapping value -> [settings](#valuesettings)"),
]


Gpus = Annotated[
    tuple[int, ...] | None,
    PlainValidator(_read_gpu_list),
    WithJsonSchema(_GPUS_SCHEMA),
    KindName("`auto`, list of indexes, or 0"),
]


class Slots(FileModel, builds=model.Slots):
    """Where runs may go."""

    gpus: Gpus = file_key(
        None,
        "`auto` (all that nobody else uses), a list of indexes, or 0 for none. With `auto` on a machine without a GPU "
        "cells run on CPU slots, and `muster check` warns of it.",
        "[0, 1, 6, 7]",
    )
    per_gpu: Whole = file_key(1, "Cells that share one GPU.", "2", ge=1)
    cpus: Whole = file_key(1, "Cells that run at once without a GPU.", "2", ge=0)


class MoneySection(FileModel, builds=model.Money):
    """What a slot costs and how much there is."""

    price: Number = file_key(0.0, "Price of one hour. A changed one holds from the next `muster up` on.", "1.98", ge=0)
    currency: Text = file_key("CNY", "Printed beside every amount.", "CNY")
    per: Annotated[Literal["gpu", "machine"], BeforeValidator(one_of_reader("gpu", "machine"))] = file_key(
        "gpu",
        "`gpu`: each GPU is billed while a run holds it (each slot, where the campaign has no GPU); `machine`: the "
        "machine is billed from `since` on, whatever runs.",
        "machine",
    )
    budget: Number | None = file_key(
        None, "The most that may be spent: a cell that it would not cover does not start.", "200", ge=0
    )
    paid: Number | None = file_key(None, "What was really paid, to compare with the accounts.", "200", ge=0)
    since: Moment | None = file_key(None, "When the rent of the machine began.", "2026-02-22T02:00+08:00")
    at_cap: Annotated[Literal["hold", "stop"], BeforeValidator(one_of_reader("hold", "stop"))] = file_key(
        "hold", "At the budget: start nothing new (`hold`), or stop the runs too (`stop`).", "stop"
    )

    @model_validator(mode="after")
    def _budget_needs_a_price(self) -> MoneySection:
        if self.budget is not None and not self.price:
            raise value_error("a budget without a price can't be enforced", "add the price of one hour")
        return self


class Wandb(FileModel):
    """How runs use W&B: offline, with its cache in `.muster/wandb` and each run's files in its own output."""

    mode: Annotated[Literal["offline", "online", "disabled"], BeforeValidator(one_of_reader(*WANDB_MODES))] = file_key(
        "offline", "`offline`: files only, nothing is sent; `online`: they are sent, too.", "online"
    )
    entity: Text | None = file_key(None, "The account or team that online runs belong to.", "my-lab")
    project: Text | None = file_key(None, "The project of the runs.", "act-ot")


class Logs(FileModel):
    """What becomes of the logs of a run that writes without end."""

    max: Size = file_key(
        ...,
        "What each of an attempt's two logs may take on the disk. A longer one loses its middle at the next look at "
        "the run: a quarter of this stays of its beginning and at least half of it of its end. Between two looks a "
        "fast log may take more, and one of a run that ends before the next look is not cut. The run notices nothing.",
        "1G",
    )


class CampaignFile(FileModel):
    """The whole file."""

    muster: Whole = file_key(..., "Version of this format; always 1.", "1")
    campaign: Text = file_key(..., "Name of the campaign.", "paper-sprint")
    language: Annotated[Literal["zh", "en"], BeforeValidator(one_of_reader("zh", "en"))] = file_key(
        "en", "Language of the reports.", "zh"
    )
    axes: dict[str, Axis] = file_key(
        {}, "Axes by name: a list of values, or a mapping value -> settings.", "{seed: [0, 1, 2, 3, 4]}"
    )
    env: Env = file_key({}, "Environment variables of every job.", "{MUJOCO_GL: egl}")
    slots: Slots = file_key(Slots(), "Where runs may go.", "{gpus: auto, per_gpu: 1, cpus: 2}")
    money: MoneySection | None = file_key(
        None, "Price and budget, for `cost`, `status` and `plan`.", "{price: 1.98, budget: 200}"
    )
    logs: Logs | None = file_key(
        None, "Where logs are cut. Without it none ever is; `status` tells of one beyond 1 GB.", "{max: 1G}"
    )
    wandb: Wandb | None = file_key(
        None, "How runs use W&B. A campaign with a loop has it even unsaid: offline.", "{mode: online, project: act-ot}"
    )
    jobs: dict[str, JobSection] = file_key(..., "Jobs by name.", "{train: {axes: [seed], command: python train.py}}")
    decision: Decision | None = file_key(
        None, "What is decided from the finished matrix; declared before anything runs.", ""
    )
    report: Report | None = file_key(None, "Tables and documents.", "{columns: [id/score, ood/score]}")
    loop: Loop | None = file_key(None, "Rounds of proposed configs.", "")
    gates: dict[str, Gate] = file_key({}, "Decisions over the metric stream of a run, by name.", "")
    notify: list[Notice] = file_key(
        [],
        "Whom to tell of deaths, stalls and ends: `{run: COMMAND}` gets each notice as JSON on stdin.",
        "[{run: ./tell.sh}]",
    )
    finish: Finish | None = file_key(None, "What to do when all is done.", "{report: true, shutdown: false}")
