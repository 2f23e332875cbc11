"""Gates over the metric stream of a run, in the campaign file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Tag, model_validator

from muster.spec.base import Model, field, forms
from muster.spec.document import Scalar
from muster.spec.fields import LIST, MAP, ONE, Number, Shown, Text, Whole, choice, expected, read_text, wrong
from muster.spec.model_after import Anything
from muster.stages.curriculum import Curriculum
from muster.stages.errors import SpecError
from muster.stages.schedule import Schedule as Stages
from muster.stages.settings import KEYS, GateSettings
from muster.stages.windows import FORM
from muster.stages.windows import Window as Windowed

Notation = Callable[[Any], object]


def _read_window(value: object) -> str:
    if not isinstance(value, Scalar) or value.value is None:
        raise expected(f"a window such as {FORM}", value)
    try:
        return str(Windowed.parse(value.text))
    except ValueError:
        raise expected(f"a window such as {FORM}", value) from None


def _read(value: Any, read: Notation) -> None:
    try:
        read(value)
    except SpecError as error:
        found = [f"character {each.at + 1}: {each.what}" if each.text else each.what for each in error.problems]
        hint = next((each.hint for each in error.problems if each.hint), "")
        raise wrong(f"{error.name}: {'; '.join(found)}", hint) from None


def _notation(read: Notation) -> Callable[[object], str]:
    def checked(value: object) -> str:
        text = read_text(value)
        _read(text, read)
        return text

    return checked


Window = Annotated[str, BeforeValidator(_read_window), Shown("window")]
Act = Annotated[Literal["notify", "stop", "prune"], BeforeValidator(choice("notify", "stop", "prune"))]
Wins = Annotated[Literal["failure", "success"], BeforeValidator(choice("failure", "success"))]


class GateRead(Model):
    """The metric stream that a gate reads."""

    jsonl: Text | None = field(None, "A file with one JSON object per line.", "eval_multi_history.jsonl")
    csv: Text | None = field(None, "A CSV file with a header.", "progress.csv")
    wandb: Text | None = field(None, "A folder with W&B runs.", "wandb")
    tensorboard: Text | None = field(None, "A folder with TensorBoard event files.", "tb")
    step: Text = field("step", "The key that holds the step.", "iter")

    @model_validator(mode="after")
    def _one_kind(self) -> GateRead:
        kinds = ("jsonl", "csv", "wandb", "tensorboard")
        if sum(getattr(self, kind) is not None for kind in kinds) != 1:
            raise wrong(f"exactly one of {', '.join(kinds)} is needed")
        return self


class Bounds(Model):
    """Bounds of a criterion."""

    min: Number | None = field(None, "At least.", "70")
    max: Number | None = field(None, "At most.", "0.1")
    above: Number | None = field(None, "More than.", "0")
    below: Number | None = field(None, "Less than.", "95")
    window: Window | None = field(
        None, "Taken over the last values: mean, median, min, max, all or p10, and how many.", "median 4"
    )


class Criterion(Bounds):
    """A condition on one key of the stream."""

    key: Text = field(..., "The key.", "first_death_p10")
    by_stage: dict[str, Bounds] = field({}, "Other bounds in some stages.", "{main: {min: 100}}")

    @model_validator(mode="after")
    def _some_bound(self) -> Criterion:
        bounds = [self, *self.by_stage.values()]
        if all(b.min is None and b.max is None and b.above is None and b.below is None for b in bounds):
            raise wrong("a criterion needs a bound", "add min, max, above or below")
        return self


class Freeze(Model):
    """Steps after a change in which nothing is decided."""

    advance: Whole = field(0, "After an advance.", "2", ge=0)
    fall_back: Whole = field(0, "After a fall back.", "5", ge=0)


Count = Annotated[Whole, Field(ge=0)]
Tolerance = Annotated[
    Annotated[Count, Tag(ONE)] | Annotated[dict[str, Count], Tag(MAP)],
    forms("a whole number, or a mapping stage -> whole number"),
    Shown("whole number, or mapping stage -> whole number"),
]
Frozen = Annotated[
    Annotated[Count, Tag(ONE)] | Annotated[Freeze, Tag(MAP)],
    forms("a whole number, or {advance: 2, fall_back: 5}"),
    Shown("whole number, or `{advance, fall_back}`"),
]
Schedule = Annotated[
    Annotated[str, BeforeValidator(_notation(Stages.parse)), Tag(ONE)]
    | Annotated[list[dict[str, Anything]], Tag(LIST)],
    forms('text such as "8:a.json|type=ne;15:b.json|type=main", or a list of mappings'),
    Shown("text, or list of mappings"),
]
Lessons = Annotated[
    Annotated[str, BeforeValidator(_notation(Curriculum.parse)), Tag(ONE)]
    | Annotated[list[dict[str, Anything]], Tag(LIST)],
    forms('text such as "15:9,20:10" (value:iterations), or a list of mappings'),
    Shown("text, or list of mappings"),
]


class Rules(Model):
    """What a gate decides by: also a file of its own, for `muster gates replay --with`."""

    stage: Text | None = field(None, "The key that holds the stage's name.", "stage")
    schedule: Schedule | None = field(None, "The stages in order.", '"8:a.json|type=ne;15:a.json|type=main"')
    curriculum: Lessons | None = field(None, "Values and for how many iterations each holds.", '"15:9,20:10"')
    iterations: Whole | None = field(None, "Length of a run. Default: the job's `steps`.", "60", ge=1)
    every: Whole | None = field(None, "Iterations from one row of the stream to the next.", "8", ge=1)
    success: list[Criterion] = field([], "All must hold for a success.", "[{key: first_death_p10, min: 70}]")
    failure: list[Criterion] = field([], "Any of them is a failure.", "[{key: first_death_p10, below: 95}]")
    wins: Wins = field("failure", "What counts where both hold.", "failure")
    required: Whole = field(1, "Successes in a row that advance.", "2", ge=1)
    tolerance: Tolerance = field(
        0, "Failures in a row that are tolerated, overall or by stage.", "{default: 2, main: 3}"
    )
    allowance: list[Count] = field([], "Failures that each phase bears in all.", "[4, 5, 6, 7]")
    freeze: Frozen = field(0, "Steps after a change in which nothing is decided.", "5")
    phases: Whole | None = field(None, "How many there are. Default: no last one.", "4", ge=2)

    @model_validator(mode="after")
    def _something_to_decide(self) -> Rules:
        if not self.success and not self.failure:
            raise wrong("a gate needs success or failure criteria", "add `success: [{key: ..., min: ...}]`")
        for written, read in ((self.schedule, Stages.of), (self.curriculum, Curriculum.of)):
            if isinstance(written, list):
                _read(written, read)
        _read(self, settings_of)
        return self


def settings_of(rules: Rules) -> GateSettings:
    written: dict[str, Any] = rules.model_dump(exclude_none=True, warnings=False)
    return GateSettings.of({key: value for key, value in written.items() if key in KEYS})


class Gate(Rules):
    """A decision over the metric stream of a run: advance, hold, fall back."""

    job: Text = field(..., "The job whose runs it watches.", "train")
    read: GateRead = field(..., "The metric stream.", "{jsonl: eval_multi_history.jsonl, step: iter}")
    act: Act = field(
        "notify",
        "What more failures than are tolerated lead to: `stop` ends the run, `prune` gives its cell up too.",
        "stop",
    )
    lets: list[Text] = field([], "Jobs that need this one and start only where the gate has opened.", "[finetune]")
