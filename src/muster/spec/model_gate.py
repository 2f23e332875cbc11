"""Gates over the metric stream of a run, in the campaign file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Tag, model_validator

from muster.model import campaign as model
from muster.spec.field_kinds import (
    LIST,
    MAP,
    ONE,
    FileModel,
    KindName,
    Number,
    Text,
    Whole,
    build_section,
    discriminate_forms,
    expected_error,
    file_key,
    one_of_reader,
    read_nonempty_text,
    value_error,
)
from muster.spec.model_decision_loop_finish import Anything
from muster.spec.yaml_tree import Scalar
from muster.stages.criteria import WINDOW_FORM, Window
from muster.stages.gate_settings import GateSettings
from muster.stages.notation import SpecError
from muster.stages.schedule import Curriculum, Schedule

Notation = Callable[[Any], object]


def _read_window(value: object) -> str:
    if not isinstance(value, Scalar) or value.value is None:
        raise expected_error(f"a window such as {WINDOW_FORM}", value)
    try:
        return str(Window.parse(value.text))
    except ValueError:
        raise expected_error(f"a window such as {WINDOW_FORM}", value) from None


def _check_notation(value: Any, read: Notation) -> None:
    try:
        read(value)
    except SpecError as error:
        found = [f"character {each.at + 1}: {each.what}" if each.text else each.what for each in error.problems]
        hint = next((each.hint for each in error.problems if each.hint), "")
        raise value_error(f"{error.name}: {'; '.join(found)}", hint) from None


def _notation_reader(read: Notation) -> Callable[[object], str]:
    def checked(value: object) -> str:
        text = read_nonempty_text(value)
        _check_notation(text, read)
        return text

    return checked


WindowText = Annotated[str, BeforeValidator(_read_window), KindName("window")]
Act = Annotated[Literal["notify", "stop", "prune"], BeforeValidator(one_of_reader("notify", "stop", "prune"))]
Wins = Annotated[Literal["failure", "success"], BeforeValidator(one_of_reader("failure", "success"))]


class GateRead(FileModel, builds=model.GateSource):
    """The metric stream that a gate reads."""

    jsonl: Text | None = file_key(None, "A file with one JSON object per line.", "eval_multi_history.jsonl")
    csv: Text | None = file_key(None, "A CSV file with a header.", "progress.csv")
    wandb: Text | None = file_key(None, "A folder with W&B runs.", "wandb")
    tensorboard: Text | None = file_key(None, "A folder with TensorBoard event files.", "tb")
    step: Text = file_key("step", "The key that holds the step.", "iter")

    @model_validator(mode="after")
    def _one_kind(self) -> GateRead:
        kinds = ("jsonl", "csv", "wandb", "tensorboard")
        if sum(getattr(self, kind) is not None for kind in kinds) != 1:
            raise value_error(f"exactly one of {', '.join(kinds)} is needed")
        return self


class Bounds(FileModel, builds=model.GateBounds):
    """Bounds of a criterion."""

    min: Number | None = file_key(None, "At least.", "70")
    max: Number | None = file_key(None, "At most.", "0.1")
    above: Number | None = file_key(None, "More than.", "0")
    below: Number | None = file_key(None, "Less than.", "95")
    window: WindowText | None = file_key(
        None, "Taken over the last values: mean, median, min, max, all or p10, and how many.", "median 4"
    )


class Criterion(Bounds, builds=model.GateCriterion):
    """A condition on one key of the stream."""

    key: Text = file_key(..., "The key.", "first_death_p10")
    by_stage: dict[str, Bounds] = file_key({}, "Other bounds in some stages.", "{main: {min: 100}}")

    @model_validator(mode="after")
    def _some_bound(self) -> Criterion:
        bounds = [self, *self.by_stage.values()]
        if all(b.min is None and b.max is None and b.above is None and b.below is None for b in bounds):
            raise value_error("a criterion needs a bound", "add min, max, above or below")
        return self


class Freeze(FileModel, builds=model.GateFreeze):
    """Steps after a change in which nothing is decided."""

    advance: Whole = file_key(0, "After an advance.", "2", ge=0)
    fall_back: Whole = file_key(0, "After a fall back.", "5", ge=0)


Count = Annotated[Whole, Field(ge=0)]
Tolerance = Annotated[
    Annotated[Count, Tag(ONE)] | Annotated[dict[str, Count], Tag(MAP)],
    discriminate_forms("a whole number, or a mapping stage -> whole number"),
    KindName("whole number, or mapping stage -> whole number"),
]
Frozen = Annotated[
    Annotated[Count, Tag(ONE)] | Annotated[Freeze, Tag(MAP)],
    discriminate_forms("a whole number, or {advance: 2, fall_back: 5}"),
    KindName("whole number, or `{advance, fall_back}`"),
]
ScheduleForm = Annotated[
    Annotated[str, BeforeValidator(_notation_reader(Schedule.parse)), Tag(ONE)]
    | Annotated[list[dict[str, Anything]], Tag(LIST)],
    discriminate_forms('text such as "8:a.json|type=ne;15:b.json|type=main", or a list of mappings'),
    KindName("text, or list of mappings"),
]
Lessons = Annotated[
    Annotated[str, BeforeValidator(_notation_reader(Curriculum.parse)), Tag(ONE)]
    | Annotated[list[dict[str, Anything]], Tag(LIST)],
    discriminate_forms('text such as "15:9,20:10" (value:iterations), or a list of mappings'),
    KindName("text, or list of mappings"),
]


class Rules(FileModel, builds=model.GateRules):
    """What a gate decides by: also a file of its own, for `muster gates replay --with`."""

    stage: Text | None = file_key(None, "The key that holds the stage's name.", "stage")
    schedule: ScheduleForm | None = file_key(None, "The stages in order.", '"8:a.json|type=ne;15:a.json|type=main"')
    curriculum: Lessons | None = file_key(None, "Values and for how many iterations each holds.", '"15:9,20:10"')
    iterations: Whole | None = file_key(None, "Length of a run. Default: the job's `steps`.", "60", ge=1)
    every: Whole | None = file_key(None, "Iterations from one row of the stream to the next.", "8", ge=1)
    success: list[Criterion] = file_key([], "All must hold for a success.", "[{key: first_death_p10, min: 70}]")
    failure: list[Criterion] = file_key([], "Any of them is a failure.", "[{key: first_death_p10, below: 95}]")
    wins: Wins = file_key("failure", "What counts where both hold.", "failure")
    required: Whole = file_key(1, "Successes in a row that advance.", "2", ge=1)
    tolerance: Tolerance = file_key(
        0, "Failures in a row that are tolerated, overall or by stage.", "{default: 2, main: 3}"
    )
    allowance: list[Count] = file_key([], "Failures that each phase bears in all.", "[4, 5, 6, 7]")
    freeze: Frozen = file_key(0, "Steps after a change in which nothing is decided.", "5")
    phases: Whole | None = file_key(None, "How many there are. Default: no last one.", "4", ge=2)

    @model_validator(mode="after")
    def _something_to_decide(self) -> Rules:
        if not self.success and not self.failure:
            raise value_error("a gate needs success or failure criteria", "add `success: [{key: ..., min: ...}]`")
        for written, read in ((self.schedule, Schedule.of), (self.curriculum, Curriculum.of)):
            if isinstance(written, list):
                _check_notation(written, read)
        _check_notation(self, gate_settings_of)
        return self


def gate_settings_of(rules: Rules) -> GateSettings:
    return GateSettings.of(model.section_as_written(build_section(rules)))


class Gate(Rules, builds=model.DeclaredGate):
    """A decision over the metric stream of a run: advance, hold, fall back."""

    job: Text = file_key(..., "The job whose runs it watches.", "train")
    read: GateRead = file_key(..., "The metric stream.", "{jsonl: eval_multi_history.jsonl, step: iter}")
    act: Act = file_key(
        "notify",
        "What more failures than are tolerated lead to: `stop` ends the run, `prune` gives its cell up too.",
        "stop",
    )
    lets: list[Text] = file_key([], "Jobs that need this one and start only where the gate has opened.", "[finetune]")
