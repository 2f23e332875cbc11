"""A job in the campaign file: command, output, progress, proof, results."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Tag, model_validator

from muster.model import campaign as model
from muster.spec.field_kinds import (
    MAP,
    ONE,
    AxisScalar,
    CommandLine,
    Duration,
    EnvText,
    FileModel,
    Flag,
    KindName,
    Number,
    Pattern,
    Share,
    Text,
    Whole,
    discriminate_forms,
    file_key,
    one_of_reader,
    value_error,
)

Env = dict[str, EnvText]
PROGRESS_KINDS = ("jsonl", "csv", "wandb", "tensorboard", "stdout", "files", "checkpoint")
RESULT_KINDS = ("json", "jsonl", "csv", "npz", "stdout")


class Uses(FileModel, builds=model.SlotUse):
    """Slots that one cell takes. Default: one slot of the campaign's kind."""

    gpu: Whole | None = file_key(None, "GPUs; 0 for a job that needs none.", "0", ge=0)
    cpu: Whole | None = file_key(None, "CPU slots.", "1", ge=0)


class Progress(FileModel):
    """One source of progress. Exactly one of the first seven keys says what it is."""

    jsonl: Text | None = file_key(None, "A file with one JSON object per line.", "metrics.jsonl")
    csv: Text | None = file_key(None, "A CSV file with a header.", "progress.csv")
    wandb: Text | None = file_key(None, "A folder with W&B runs, one of them, or a `.wandb` file.", "wandb")
    tensorboard: Text | None = file_key(None, "A folder with TensorBoard event files, or one of them.", "tb")
    stdout: Pattern | None = file_key(None, "Lines of the output; the group is the step.", r"'step[: ]+(\d+)'")
    files: Text | None = file_key(None, "Files that appear one after the other.", "replay/*.npz")
    checkpoint: Text | None = file_key(None, "A checkpoint, or a glob of checkpoints.", "checkpoint.ckpt")
    step: Text | None = file_key(
        None, "Key or column that holds the step (jsonl and csv: `step`; wandb: `_step`).", "TotalEnvSteps"
    )
    every: Duration | None = file_key(None, "How often it is written, where that is known.", "1000s")
    scale: Number = file_key(1.0, "Logged step x scale = the job's step.", "0.2", gt=0)

    @property
    def kind(self) -> str:
        return next(kind for kind in PROGRESS_KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _one_kind(self) -> Progress:
        _require_exactly_one(self, PROGRESS_KINDS)
        if self.stdout is not None:
            _require_one_group(self.stdout)
        if self.step is not None and self.kind in ("stdout", "files", "checkpoint", "tensorboard"):
            raise value_error(f"'step' means nothing for {self.kind}", "remove it")
        return self


class StepProof(FileModel, builds=model.StepProof):
    min: Text = file_key(..., "The step that must have been reached: a number or `{steps}`.", '"{steps}"')
    within: Share = file_key(0.0, "How much of it may be missing.", "2%")


class CheckpointProof(FileModel, builds=model.CheckpointProof):
    path: Text = file_key(..., "The checkpoint that must open.", "checkpoint.ckpt")
    saved_after: Share = file_key(
        0.0,
        "It must be saved after this share of the run: of its steps where it says its own, else of its time.",
        "90%",
    )


class ProofSection(FileModel, builds=model.Proof):
    """What turns exit 0 into DONE. Empty: exit 0 is enough."""

    step: StepProof | None = file_key(None, "The final step.", '{min: "{steps}", within: 2%}')
    checkpoint: CheckpointProof | None = file_key(
        None, "A checkpoint, and when it was saved.", "{path: last.pt, saved_after: 90%}"
    )
    files: list[Text] = file_key([], "Files that must be there and open.", "[result.json]")


class Best(FileModel, builds=model.BestOf):
    best: Text = file_key(..., "A result of the same job; the value is taken where that one is best.", "score")


class At(FileModel, builds=model.TakenAt):
    at: Best = file_key(..., "Where to take the value.", "{best: score}")


_REDUCE = ("last", "mean", "min", "max")
_PlainReduce = Annotated[Literal["last", "mean", "min", "max"], BeforeValidator(one_of_reader(*_REDUCE))]
Reduce = Annotated[
    Annotated[_PlainReduce, Tag(ONE)] | Annotated[At, Tag(MAP)],
    discriminate_forms("last, mean, min, max or {at: {best: NAME}}"),
    KindName("`last`, `mean`, `min`, `max` or `{at: {best: NAME}}`"),
]


class Result(FileModel):
    """One number of a finished cell. Exactly one of the first five keys says where it is."""

    json_: Text | None = file_key(None, "A JSON file.", "result.json", alias="json")
    jsonl: Text | None = file_key(None, "A file with one JSON object per line.", "metrics.jsonl")
    csv: Text | None = file_key(None, "A CSV file with a header.", "progress.csv")
    npz: Text | None = file_key(None, "A NumPy archive.", "eval.npz")
    stdout: Pattern | None = file_key(None, "A line of the output; the group is the value.", r"'score: ([\d.]+)'")
    key: Text | None = file_key(None, "Key, column or array; not for stdout.", "train/risk_penalty")
    reduce: Reduce = file_key("last", "Which value, where there are many.", "{at: {best: score}}")
    grain: Number | None = file_key(
        None,
        "The step between values it can have, for the chance of equal ones; default: as it looks.",
        "0.0001",
        gt=0,
    )
    min: Number | None = file_key(None, "Its lowest value: runs may all end there.", "-21")
    max: Number | None = file_key(None, "Its highest value, likewise.", "1000")

    def path(self, kind: str) -> str | None:
        value: str | None = self.json_ if kind == "json" else getattr(self, kind)
        return value

    @property
    def kind(self) -> str:
        return next(kind for kind in RESULT_KINDS if self.path(kind) is not None)

    @model_validator(mode="after")
    def _one_kind(self) -> Result:
        _require_exactly_one(self, RESULT_KINDS)
        if self.min is not None and self.max is not None and self.min >= self.max:
            raise value_error(f"min {self.min:g} is not below max {self.max:g}", "they are the bounds of the metric")
        if self.stdout is None and self.key is None:
            raise value_error(f"a result from {self.kind} needs a key", "add `key: NAME`")
        if self.stdout is not None:
            _require_one_group(self.stdout)
            if self.key is not None:
                raise value_error(
                    "'key' means nothing for stdout", "remove it; the group of the expression is the value"
                )
        return self


class Retry(FileModel):
    max: Whole = file_key(3, "How often Muster tries a cell again by itself.", "3", ge=0)


class JobSection(FileModel):
    """A kind of work: its axes, its command, what it needs, how its progress and its end are recognised."""

    axes: list[Text] | None = file_key(None, "Axes whose product is the job's matrix; [] runs once.", "[config, seed]")
    exclude: list[dict[str, AxisScalar]] = file_key(
        [], "Points left out of the matrix.", "[{config: v2_full, seed: 4}]"
    )
    needs: list[Text] = file_key([], "Jobs whose cells (same values on shared axes) must be DONE first.", "[train]")
    command: CommandLine = file_key(
        ..., "What runs. No shell, unless `shell: true`.", "python train.py --seed {seed} --out {out}"
    )
    resume: CommandLine | None = file_key(
        None, "Used instead by a later attempt when there is a checkpoint.", "python train.py --from {last.checkpoint}"
    )
    shell: Flag = file_key(False, "Give the command to a shell, as one text.", "true")
    within: CommandLine | None = file_key(
        None, "Words put before the command.", "conda run --no-capture-output -n safedreamer"
    )
    cwd: Text | None = file_key(
        None, "Folder to run in, relative to the campaign's. Default: the campaign's.", "../SafeDreamer_v2"
    )
    config: Text | None = file_key(
        None,
        "A config file (JSON, YAML, TOML) for `{config_file}`, relative to the campaign's folder; `edits:` of axis "
        "values change a copy of it.",
        "configs/base.json",
    )
    env: Env = file_key({}, "Environment variables of this job.", "{MUJOCO_GL: egl}")
    steps: Whole | None = file_key(None, "Steps of one run, for `{steps}`, progress and proof.", "120000", ge=1)
    uses: Uses = file_key(Uses(), "Slots that one cell takes. Default: one of the campaign's kind.", "{gpu: 0}")
    output: Text = file_key(
        "{out}", "Folder of the output; a glob where the trainer names it itself.", "runs/*_{config}_*_{seed}"
    )
    mkdir: Flag = file_key(True, "false: the output must not exist when the command starts.", "false")
    artifacts: list[Text] = file_key([], "Further files that belong to the attempt.", '["../plots/{config}_*"]')
    progress: list[Progress] = file_key([], "Where progress can be seen.", "[{jsonl: metrics.jsonl, step: step}]")
    proof: ProofSection = file_key(ProofSection(), "What turns exit 0 into DONE.", "{files: [result.json]}")
    results: dict[str, Result] = file_key(
        {},
        "Numbers of a finished cell, by name. One that is missing or no finite number: the cell is not DONE.",
        "{score: {json: result.json, key: score}}",
    )
    retry: Retry = file_key(Retry(), "How often to try.", "{max: 3}")
    on_stall: Annotated[Literal["notify", "restart"], BeforeValidator(one_of_reader("notify", "restart"))] = file_key(
        "notify", "What to do with a stalled run. Nothing is killed unless this says so.", "restart"
    )
    grace: Duration | None = file_key(
        None, "Time until the first progress is due. Default: learned, 60m at least.", "60m"
    )
    timeout: Duration | None = file_key(None, "An attempt is stopped after this time.", "12h", gt=0)


def _require_exactly_one(entry: Progress | Result, kinds: tuple[str, ...]) -> None:
    given = [kind for kind in kinds if kind in {_file_key_of_field(name) for name in entry.model_fields_set}]
    if len(given) != 1:
        found = " and ".join(f"'{kind}'" for kind in given) or "none"
        raise value_error(f"exactly one of {', '.join(kinds)} is needed, found {found}", "one source per entry")


def _file_key_of_field(name: str) -> str:
    return name.rstrip("_")


def _require_one_group(pattern: str) -> None:
    if re.compile(pattern).groups != 1:
        raise value_error("the regular expression has more than one group", "write (?:...) for the others")
