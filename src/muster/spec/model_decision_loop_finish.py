"""The sections `decision`, `report`, `loop`, `notify` and `finish` of the campaign file."""

from __future__ import annotations

import itertools
import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainValidator, Tag, WithJsonSchema, model_validator

from muster.model import campaign as model
from muster.spec.field_kinds import (
    MAP,
    ONE,
    Duration,
    Edit,
    FileModel,
    Flag,
    KindName,
    Loose,
    Number,
    Text,
    Whole,
    discriminate_forms,
    expected_error,
    file_key,
    one_of_reader,
    read_finite_number,
    read_nonempty_text,
    read_true_or_false,
    value_error,
)
from muster.spec.yaml_tree import Scalar, shorten_text

_NEAR = 1e-8
_ENTRY = re.compile(r"(?:[^:]+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*")
_CHOICE_SCHEMA: dict[str, Any] = {"type": ["string", "number", "boolean"]}


def _read_amount(value: object) -> int | float:
    """A number that stays an integer where it is written as one."""
    number = read_finite_number(value)
    return value.value if isinstance(value, Scalar) and isinstance(value.value, int) else number


def _read_choice_values(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise expected_error("a list of values", value)
    found: list[Any] = []
    for item in value:
        if not isinstance(item, Scalar) or item.value is None:
            raise expected_error("a value", item)
        if isinstance(item.value, float) and not math.isfinite(item.value):
            raise expected_error("a finite number", item)
        if item.value in found:
            raise value_error(f"{shorten_text(item.text)} is there twice", "1, 1.0 and true count as the same")
        found.append(item.value)
    if len(found) < 2:
        raise value_error("there is nothing to choose from", "give at least two values, or leave the path out")
    return found


def _read_entry_point(value: object) -> str:
    text = read_nonempty_text(value)
    if not _ENTRY.fullmatch(text):
        raise value_error(
            f"{shorten_text(text)} names no function", "write FILE.py:FUNCTION or package.module:FUNCTION"
        )
    return text


Amount = Annotated[int | float, PlainValidator(_read_amount), WithJsonSchema({"type": "number"}), KindName("number")]
Choices = Annotated[
    list[Any],
    PlainValidator(_read_choice_values),
    WithJsonSchema({"type": "array", "items": _CHOICE_SCHEMA, "minItems": 2}),
    KindName("list of values"),
]
Entry = Annotated[str, BeforeValidator(_read_entry_point), KindName("FILE.py:FUNCTION or package.module:FUNCTION")]
Sampler = Annotated[Literal["tpe", "gp", "random"], BeforeValidator(one_of_reader("tpe", "gp", "random"))]


class Dimension(FileModel, builds=model.SearchDimension):
    """What one path of the config may be: a range, or values."""

    low: Amount | None = file_key(None, "The least.", "1e-5")
    high: Amount | None = file_key(None, "The most.", "1e-2")
    step: Amount | None = file_key(None, "Distance between the values that are drawn, counted from `low`.", "1")
    log: Flag = file_key(False, "Search the order of magnitude.", "true")
    values: Choices | None = file_key(None, "Instead of a range: one of these.", "[16, 32, 64]")

    @model_validator(mode="after")
    def _range_or_values(self) -> Dimension:
        if self.values is not None:
            if self.low is not None or self.high is not None or self.step is not None or self.log:
                raise value_error("it has both a range and values", "keep `values`, or `low` and `high`")
            return self
        if self.low is None or self.high is None:
            raise value_error("a path needs `low` and `high`, or `values`", "as in {low: 1e-5, high: 1e-2, log: true}")
        if self.low >= self.high:
            raise value_error(f"low {self.low} is not below high {self.high}", "exchange them")
        if self.log and self.low <= 0:
            raise value_error(f"with `log` low must be above 0, found {self.low}", "give it a small number: 1e-5")
        self._check_step(self.low, self.high)
        return self

    def _check_step(self, low: float, high: float) -> None:
        if self.step is None:
            return
        if self.log:
            raise value_error("`log` and `step` don't go together", "leave one of them out")
        if self.step <= 0:
            raise value_error(f"step must be above 0, found {self.step}")
        steps = (high - low) / self.step
        if abs(steps - round(steps)) > _NEAR * max(1.0, steps) or steps < 1:
            last = low + math.floor(steps) * self.step
            raise value_error(f"steps of {self.step} from {low} never reach {high}", f"the last one is {last:g}")


class Search(FileModel, builds=model.LoopSearch):
    """Points of a space by Optuna (extra `tune`), told every score of `keep: {by, better}`."""

    space: dict[str, Dimension] = file_key(
        ..., "Paths of the config, and what they may be.", '{"optimizer.lr": {low: 1e-5, high: 1e-2, log: true}}'
    )
    sampler: Sampler = file_key("tpe", "How points are drawn; `gp` needs torch.", "gp")
    trials_per_round: Whole = file_key(4, "Variants of each round.", "4", ge=1)
    seed: Whole = file_key(0, "What is drawn by chance is drawn from it.", "0", ge=0)


ReadySet = Annotated[Literal["act_ot"], BeforeValidator(one_of_reader("act_ot"))]
Others = Annotated[Literal["wait", "ignore"], BeforeValidator(one_of_reader("wait", "ignore"))]
Better = Annotated[Literal["higher", "lower"], BeforeValidator(one_of_reader("higher", "lower"))]
_SCALAR_SCHEMA: dict[str, Any] = {"type": ["string", "number", "boolean"]}


def _node_as_value(value: object) -> Any:
    """A value of a kind that only its reader knows: lists and mappings as they are, scalars with their type."""
    if isinstance(value, dict):
        return {key: _node_as_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_node_as_value(item) for item in value]
    return value.value if isinstance(value, Scalar) else value


def _read_scalar_value(value: object) -> Any:
    if not isinstance(value, Scalar) or value.value is None:
        raise expected_error("a value", value)
    return value.value


def _read_condition(value: object) -> str:
    return _parse_rule_expression(read_nonempty_text(value), "truth")


def _read_expression(value: object) -> str:
    return _parse_rule_expression(read_nonempty_text(value), "number")


def _parse_rule_expression(text: str, kind: Literal["truth", "number"]) -> str:
    from muster.rules.expressions import ExpressionError, parse_expression

    try:
        parse_expression(text, kind)
    except ExpressionError as error:
        raise value_error(f"{shorten_text(text)}: character {error.column}: {error.what}", error.hint) from None
    return text


def _read_shutdown_value(value: object) -> bool | str:
    if not isinstance(value, Scalar) or value.value is None:
        raise expected_error("true, false or a command", value)
    word = value.text.strip().lower()
    if isinstance(value.value, bool) or word in ("yes", "no", "on", "off", "true", "false"):
        return read_true_or_false(value)
    if not isinstance(value.value, str):
        raise expected_error("true, false or a command", value)
    return read_nonempty_text(value)


Anything = Annotated[Any, PlainValidator(_node_as_value), WithJsonSchema({}), KindName("anything")]
Shutdown = Annotated[
    bool | str,
    PlainValidator(_read_shutdown_value),
    WithJsonSchema({"type": ["boolean", "string"]}),
    KindName("true, false or a command"),
]
Plain = Annotated[Any, PlainValidator(_read_scalar_value), WithJsonSchema(_SCALAR_SCHEMA), KindName("value")]
Condition = Annotated[str, BeforeValidator(_read_condition), KindName("condition")]
Expression = Annotated[str, BeforeValidator(_read_expression), KindName("expression")]
Notice = Annotated[
    Annotated[Text, Tag(ONE)] | Annotated[dict[str, Anything], Tag(MAP)],
    discriminate_forms("text or a mapping"),
    KindName("text or mapping"),
]


class Primary(FileModel, builds=model.PrimaryMetric):
    """The one number that the decision rests on."""

    metric: Text = file_key(..., "A result of a job.", "score")
    split: Loose | None = file_key(None, "A value of the axis `split`; needed if the job has that axis.", "ood")
    job: Text | None = file_key(None, "The job that measures it; needed if several do.", "eval")
    better: Better = file_key(..., "Which direction is better.", "higher")


class Limit(FileModel, builds=model.MetricLimit):
    """What a config must keep to be feasible."""

    metric: Text = file_key(..., "A result of a job.", "cost")
    split: Loose | None = file_key(None, "A value of the axis `split`; needed if the job has that axis.", "ood")
    job: Text | None = file_key(None, "The job that measures it; needed if several do.", "eval")
    max: Number | None = file_key(None, "The mean must not be above this.", "25")
    min: Number | None = file_key(None, "The mean must not be below this.", "0.9")
    cap: Number | None = file_key(
        None,
        "The worst value that can occur: the largest cost (with `min`: the smallest value). It is needed where seeds "
        "have a cost of 0 or are all alike: see [reports](reports.md#feasible).",
        "100",
    )

    @model_validator(mode="after")
    def _one_bound(self) -> Limit:
        if (self.max is None) == (self.min is None):
            raise value_error("a limit needs either 'max' or 'min'", "one limit, one bound")
        return self

    @model_validator(mode="after")
    def _cap_beyond(self) -> Limit:
        if self.cap is not None and self.max is not None and self.cap <= self.max:
            hint = "write the largest cost that can occur, or leave `cap` out"
            raise value_error(f"'cap' is {self.cap:g}: with 'max: {self.max:g}' it has to be larger", hint)
        if self.cap is not None and self.min is not None and self.cap >= self.min:
            hint = "write the smallest value that can occur, or leave `cap` out"
            raise value_error(f"'cap' is {self.cap:g}: with 'min: {self.min:g}' it has to be smaller", hint)
        return self


class BestBy(FileModel, builds=model.BestOf):
    best: Text = file_key(..., "The result by which the best checkpoint is chosen.", "score")


CheckpointChoice = Annotated[
    Annotated[Literal["last"], BeforeValidator(one_of_reader("last")), Tag(ONE)] | Annotated[BestBy, Tag(MAP)],
    discriminate_forms("last or {best: METRIC}"),
    KindName("`last` or `{best: METRIC}`"),
]


class Decision(FileModel, builds=model.DeclaredDecision):
    """What is decided from the finished matrix. Declared before anything runs."""

    primary: Primary = file_key(..., "The primary metric.", "{metric: score, split: ood, better: higher}")
    baseline: Loose = file_key(..., "The value of the axis `config` that the others are compared with.", "v2_baseline")
    limit: Limit | None = file_key(None, "The cost metric and its limit.", "{metric: cost, split: ood, max: 25}")
    delta: Number | None = file_key(None, "The smallest difference that matters.", "0.3", gt=0)
    checkpoint: CheckpointChoice = file_key("last", "Which checkpoint is evaluated.", "{best: score}")
    alpha: Number = file_key(0.05, "Error rate of the comparison, all looks together.", "0.05", gt=0, lt=1)
    looks: list[Whole] = file_key(
        [5, 10], "Numbers of seeds at which the result is looked at.", "[5, 10]", min_length=1
    )
    power: Number = file_key(0.8, "Power that the number of further seeds is computed for.", "0.8", gt=0, lt=1)
    factors: dict[str, dict[str, Plain]] = file_key(
        {}, "Factors of each config, for the ablation table.", "{v2_full: {u: 1}}"
    )
    notes: list[Text] = file_key([], "Remarks that go into the decision report.", "[]")

    @model_validator(mode="after")
    def _looks_grow(self) -> Decision:
        looks = [0, *self.looks]
        if any(later <= earlier for earlier, later in itertools.pairwise(looks)):
            raise value_error("the looks must grow, from 1 on", "write them in order: [5, 10]")
        return self


class Report(FileModel, builds=model.DeclaredReport):
    """Tables and documents."""

    columns: list[Text] = file_key(
        [], "Columns of the main table: SPLIT/RESULT or JOB/RESULT.", "[id/score, train/risk_penalty]"
    )
    documents: list[Text] = file_key([], "Files whose bound numbers are kept up to date.", "[ppt.md]")


class Keep(FileModel, builds=model.LoopKeep):
    """Which runs the next round builds on."""

    top: Whole | None = file_key(None, "How many. Default: all of the last round.", "4", ge=1)
    by: Expression = file_key(..., "The expression to rank by.", 'last("eval/success")')
    better: Better = file_key("higher", "Which direction is better.", "higher")


class Rule(FileModel, builds=model.LoopRule):
    """A condition on a run's metrics and the edits that follow."""

    when: Condition = file_key(..., "When it fires.", 'last("ot.pi_sum") < 0.05')
    edit: list[Edit] = file_key(..., "Edits of the run's config.", '["ot.reg@mul=1.5"]', min_length=1)
    reason: Text = file_key(..., "Why, in words; goes into the proposal.", "OT mass too small")
    priority: Whole = file_key(0, "Higher ones come first; else they are tried in order.", "1")
    limit: Whole | None = file_key(None, "How often it may fire along one lineage.", "2", ge=1)
    name: Text | None = file_key(None, "By which reports call it.", "little_mass")


class DefaultRule(FileModel, builds=model.LoopDefault):
    """What is proposed where no rule fires."""

    edit: list[Edit] = file_key(..., "Edits of the run's config.", '["ot.lambda_ot@mul=0.9"]', min_length=1)
    reason: Text = file_key(..., "Why, in words.", "mild variant")


class Stop(FileModel, builds=model.LoopStop):
    no_gain: Whole | None = file_key(None, "Stop after so many rounds without a gain.", "2", ge=1)
    target: Condition | None = file_key(None, "Stop once a variant meets it.", 'last("eval/success") >= 0.9')


class Prune(FileModel, builds=model.LoopPrune):
    """Stops a run whose best value so far is worse than the median of the others at the same step."""

    key: Text | None = file_key(None, "The metric. Default: the one that `keep: {by}` is about.", "eval/loss")
    after: Whole = file_key(0, "A run is left alone until this step.", "500", ge=0)
    least: Whole = file_key(4, "Runs of other variants that must have come as far.", "4", ge=1)


class Loop(FileModel, builds=model.DeclaredLoop):
    """Rounds of proposed configs."""

    job: Text = file_key(..., "The job that runs the proposals; it gets a growing axis `variant`.", "train")
    base: list[Text] = file_key(
        ...,
        "Configs to begin with: files, globs, or @LIST for a file of names.",
        "[configs/baseline.json]",
        min_length=1,
    )
    rounds: Whole = file_key(1, "Rounds at most.", "3", ge=1)
    variants_per_run: Whole = file_key(1, "Proposals from each run.", "1", ge=1)
    repeats: Whole = file_key(1, "Seeds per variant, for `{seed}` in the command.", "1", ge=1)
    keep: Keep | None = file_key(
        None, "Which runs the next round builds on. Default: all.", '{top: 4, by: last("eval/success")}'
    )
    use: ReadySet | None = file_key(
        None, "A rule set that comes with Muster, tried after the rules below of the same priority.", "act_ot"
    )
    rules: list[Rule] = file_key([], "Rules, tried in order.", "")
    default: DefaultRule | None = file_key(None, "What is proposed where no rule fires.", "")
    search: Search | None = file_key(None, "Instead of rules: a search of a space.", "")
    propose: Entry | None = file_key(None, "Instead of rules: a function of your own.", "my_rules.py:propose")
    stop: Stop = file_key(Stop(), "When to stop before the last round.", "{no_gain: 2}")
    prune: Prune | None = file_key(None, "When to stop a run before its end.", "{after: 500}")


class Finish(FileModel, builds=model.DeclaredFinish):
    """What to do when every cell is DONE or given up: in this order, each once. If one fails, the rest is not done."""

    report: Flag = file_key(False, "Make the report; a partial one where cells were given up.", "true")
    docs: Flag = file_key(False, "Update the bound documents.", "true")
    run: list[Text] = file_key(
        [],
        "Commands to run then, in order and without a shell; each must exit with 0, and bear to be run twice.",
        '["rclone copy reports remote:sprint"]',
    )
    notify: Flag = file_key(False, "Tell everybody in `notify:` that it is complete.", "true")
    shutdown: Shutdown = file_key(
        False, "Power off, with proof that all is done; a text is the command for it, given to a shell.", "true"
    )
    countdown: Duration = file_key(60.0, "How long it can still be cancelled before the command is run.", "5m")
    others: Others = file_key(
        "wait", "What the work of other users does to a power-off: it waits for them, or goes on.", "ignore"
    )
