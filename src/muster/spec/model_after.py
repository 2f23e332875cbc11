"""What is made of the runs, in the campaign file: decision, report, loop, notices, finish."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainValidator, Tag, WithJsonSchema, model_validator

from muster.spec.base import Model, field, forms
from muster.spec.document import Scalar, shorten
from muster.spec.fields import (
    MAP,
    ONE,
    Duration,
    Edit,
    Flag,
    Loose,
    Number,
    Shown,
    Text,
    Whole,
    choice,
    expected,
    read_flag,
    read_text,
    wrong,
)
from muster.spec.model_search import Entry, Search

ReadySet = Annotated[Literal["act_ot"], BeforeValidator(choice("act_ot"))]
Others = Annotated[Literal["wait", "ignore"], BeforeValidator(choice("wait", "ignore"))]
Better = Annotated[Literal["higher", "lower"], BeforeValidator(choice("higher", "lower"))]
_SCALAR_SCHEMA: dict[str, Any] = {"type": ["string", "number", "boolean"]}


def _read_any(value: object) -> Any:
    """A value of a kind that only its reader knows: lists and mappings as they are, scalars with their type."""
    if isinstance(value, dict):
        return {key: _read_any(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_read_any(item) for item in value]
    return value.value if isinstance(value, Scalar) else value


def _read_scalar(value: object) -> Any:
    if not isinstance(value, Scalar) or value.value is None:
        raise expected("a value", value)
    return value.value


def _read_condition(value: object) -> str:
    return _parsed(read_text(value), "truth")


def _read_expression(value: object) -> str:
    return _parsed(read_text(value), "number")


def _parsed(text: str, kind: Literal["truth", "number"]) -> str:
    from muster.rounds.expressions import parse
    from muster.rounds.tokens import ExpressionError

    try:
        parse(text, kind)
    except ExpressionError as error:
        raise wrong(f"{shorten(text)}: character {error.column}: {error.what}", error.hint) from None
    return text


def _read_shutdown(value: object) -> bool | str:
    if not isinstance(value, Scalar) or value.value is None:
        raise expected("true, false or a command", value)
    word = value.text.strip().lower()
    if isinstance(value.value, bool) or word in ("yes", "no", "on", "off", "true", "false"):
        return read_flag(value)
    if not isinstance(value.value, str):
        raise expected("true, false or a command", value)
    return read_text(value)


Anything = Annotated[Any, PlainValidator(_read_any), WithJsonSchema({}), Shown("anything")]
Shutdown = Annotated[
    bool | str,
    PlainValidator(_read_shutdown),
    WithJsonSchema({"type": ["boolean", "string"]}),
    Shown("true, false or a command"),
]
Plain = Annotated[Any, PlainValidator(_read_scalar), WithJsonSchema(_SCALAR_SCHEMA), Shown("value")]
Condition = Annotated[str, BeforeValidator(_read_condition), Shown("condition")]
Expression = Annotated[str, BeforeValidator(_read_expression), Shown("expression")]
Notice = Annotated[
    Annotated[Text, Tag(ONE)] | Annotated[dict[str, Anything], Tag(MAP)],
    forms("text or a mapping"),
    Shown("text or mapping"),
]


class Primary(Model):
    """The one number that the decision rests on."""

    metric: Text = field(..., "A result of a job.", "score")
    split: Loose | None = field(None, "A value of the axis `split`; needed if the job has that axis.", "ood")
    job: Text | None = field(None, "The job that measures it; needed if several do.", "eval")
    better: Better = field(..., "Which direction is better.", "higher")


class Limit(Model):
    """What a config must keep to be feasible."""

    metric: Text = field(..., "A result of a job.", "cost")
    split: Loose | None = field(None, "A value of the axis `split`; needed if the job has that axis.", "ood")
    job: Text | None = field(None, "The job that measures it; needed if several do.", "eval")
    max: Number | None = field(None, "The mean must not be above this.", "25")
    min: Number | None = field(None, "The mean must not be below this.", "0.9")
    cap: Number | None = field(
        None,
        "The worst value that can occur: the largest cost (with `min`: the smallest value). It is needed where seeds "
        "have a cost of 0 or are all alike: see [reports](reports.md#feasible).",
        "100",
    )

    @model_validator(mode="after")
    def _one_bound(self) -> Limit:
        if (self.max is None) == (self.min is None):
            raise wrong("a limit needs either 'max' or 'min'", "one limit, one bound")
        return self

    @model_validator(mode="after")
    def _cap_beyond(self) -> Limit:
        if self.cap is not None and self.max is not None and self.cap <= self.max:
            hint = "write the largest cost that can occur, or leave `cap` out"
            raise wrong(f"'cap' is {self.cap:g}: with 'max: {self.max:g}' it has to be larger", hint)
        if self.cap is not None and self.min is not None and self.cap >= self.min:
            hint = "write the smallest value that can occur, or leave `cap` out"
            raise wrong(f"'cap' is {self.cap:g}: with 'min: {self.min:g}' it has to be smaller", hint)
        return self


class BestBy(Model):
    best: Text = field(..., "The result by which the best checkpoint is chosen.", "score")


CheckpointChoice = Annotated[
    Annotated[Literal["last"], BeforeValidator(choice("last")), Tag(ONE)] | Annotated[BestBy, Tag(MAP)],
    forms("last or {best: METRIC}"),
    Shown("`last` or `{best: METRIC}`"),
]


class Decision(Model):
    """What is decided from the finished matrix. Declared before anything runs."""

    primary: Primary = field(..., "The primary metric.", "{metric: score, split: ood, better: higher}")
    baseline: Loose = field(..., "The value of the axis `config` that the others are compared with.", "v2_baseline")
    limit: Limit | None = field(None, "The cost metric and its limit.", "{metric: cost, split: ood, max: 25}")
    delta: Number | None = field(None, "The smallest difference that matters.", "0.3", gt=0)
    checkpoint: CheckpointChoice = field("last", "Which checkpoint is evaluated.", "{best: score}")
    alpha: Number = field(0.05, "Error rate of the comparison, all looks together.", "0.05", gt=0, lt=1)
    looks: list[Whole] = field([5, 10], "Numbers of seeds at which the result is looked at.", "[5, 10]", min_length=1)
    power: Number = field(0.8, "Power that the number of further seeds is computed for.", "0.8", gt=0, lt=1)
    factors: dict[str, dict[str, Plain]] = field(
        {}, "Factors of each config, for the ablation table.", "{v2_full: {u: 1}}"
    )
    notes: list[Text] = field([], "Remarks that go into the decision report.", "[]")

    @model_validator(mode="after")
    def _looks_grow(self) -> Decision:
        looks = [0, *self.looks]
        if any(later <= earlier for earlier, later in itertools.pairwise(looks)):
            raise wrong("the looks must grow, from 1 on", "write them in order: [5, 10]")
        return self


class Report(Model):
    """Tables and documents."""

    columns: list[Text] = field(
        [], "Columns of the main table: SPLIT/RESULT or JOB/RESULT.", "[id/score, train/risk_penalty]"
    )
    documents: list[Text] = field([], "Files whose bound numbers are kept up to date.", "[ppt.md]")


class Keep(Model):
    """Which runs the next round builds on."""

    top: Whole | None = field(None, "How many. Default: all of the last round.", "4", ge=1)
    by: Expression = field(..., "The expression to rank by.", 'last("eval/success")')
    better: Better = field("higher", "Which direction is better.", "higher")


class Rule(Model):
    """A condition on a run's metrics and the edits that follow."""

    when: Condition = field(..., "When it fires.", 'last("ot.pi_sum") < 0.05')
    edit: list[Edit] = field(..., "Edits of the run's config.", '["ot.reg@mul=1.5"]', min_length=1)
    reason: Text = field(..., "Why, in words; goes into the proposal.", "OT mass too small")
    priority: Whole = field(0, "Higher ones come first; else they are tried in order.", "1")
    limit: Whole | None = field(None, "How often it may fire along one lineage.", "2", ge=1)
    name: Text | None = field(None, "By which reports call it.", "little_mass")


class DefaultRule(Model):
    """What is proposed where no rule fires."""

    edit: list[Edit] = field(..., "Edits of the run's config.", '["ot.lambda_ot@mul=0.9"]', min_length=1)
    reason: Text = field(..., "Why, in words.", "mild variant")


class Stop(Model):
    no_gain: Whole | None = field(None, "Stop after so many rounds without a gain.", "2", ge=1)
    target: Condition | None = field(None, "Stop once a variant meets it.", 'last("eval/success") >= 0.9')


class Prune(Model):
    """Stops a run whose best value so far is worse than the median of the others at the same step."""

    key: Text | None = field(None, "The metric. Default: the one that `keep: {by}` is about.", "eval/loss")
    after: Whole = field(0, "A run is left alone until this step.", "500", ge=0)
    least: Whole = field(4, "Runs of other variants that must have come as far.", "4", ge=1)


class Loop(Model):
    """Rounds of proposed configs."""

    job: Text = field(..., "The job that runs the proposals; it gets a growing axis `variant`.", "train")
    base: list[Text] = field(
        ...,
        "Configs to begin with: files, globs, or @LIST for a file of names.",
        "[configs/baseline.json]",
        min_length=1,
    )
    rounds: Whole = field(1, "Rounds at most.", "3", ge=1)
    variants_per_run: Whole = field(1, "Proposals from each run.", "1", ge=1)
    repeats: Whole = field(1, "Seeds per variant, for `{seed}` in the command.", "1", ge=1)
    keep: Keep | None = field(
        None, "Which runs the next round builds on. Default: all.", '{top: 4, by: last("eval/success")}'
    )
    use: ReadySet | None = field(
        None, "A rule set that comes with Muster, tried after the rules below of the same priority.", "act_ot"
    )
    rules: list[Rule] = field([], "Rules, tried in order.", "")
    default: DefaultRule | None = field(None, "What is proposed where no rule fires.", "")
    search: Search | None = field(None, "Instead of rules: a search of a space.", "")
    propose: Entry | None = field(None, "Instead of rules: a function of your own.", "my_rules.py:propose")
    stop: Stop = field(Stop(), "When to stop before the last round.", "{no_gain: 2}")
    prune: Prune | None = field(None, "When to stop a run before its end.", "{after: 500}")


class Finish(Model):
    """What to do when every cell is DONE or given up: in this order, each once. If one fails, the rest is not done."""

    report: Flag = field(False, "Make the report; a partial one where cells were given up.", "true")
    docs: Flag = field(False, "Update the bound documents.", "true")
    run: list[Text] = field(
        [],
        "Commands to run then, in order and without a shell; each must exit with 0, and bear to be run twice.",
        '["rclone copy reports remote:sprint"]',
    )
    notify: Flag = field(False, "Tell everybody in `notify:` that it is complete.", "true")
    shutdown: Shutdown = field(
        False, "Power off, with proof that all is done; a text is the command for it, given to a shell.", "true"
    )
    countdown: Duration = field(60.0, "How long it can still be cancelled before the command is run.", "5m")
    others: Others = field(
        "wait", "What the work of other users does to a power-off: it waits for them, or goes on.", "ignore"
    )
