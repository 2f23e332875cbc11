"""A campaign as declared: every section of its file as plain frozen data. `spec` makes it from text.

A section has the keys of the file, in the order of the reference: `builds=` of its model in `spec` names its type here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from typing import Any, ClassVar, Literal, NoReturn, dataclass_transform

from muster.model.errors import Mistake

Scalar = str | int | float | bool
Better = Literal["higher", "lower"]
ProgressKind = Literal["jsonl", "csv", "wandb", "tensorboard", "stdout", "files", "checkpoint"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Section:
    """A frozen dataclass whose methods are not compiled: compiling those of all sections takes a command 8 ms."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        cls.__doc__ = cls.__doc__ or cls.__name__  # else `dataclass` makes a signature, which takes as long again
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *values: Any, **named: Any) -> None:
        names: tuple[str, ...] = getattr(self, "__match_args__", ())
        given = dict(zip(names, values, strict=False)) | named
        known = self.__dataclass_fields__
        if len(given) < len(values) + len(named) or not given.keys() <= known.keys():
            raise TypeError(f"{type(self).__name__} takes {', '.join(known)}, and each once")
        for name, each in known.items():
            value = given.get(name, each.default)
            if value is MISSING:
                if not callable(each.default_factory):
                    raise TypeError(f"{type(self).__name__} lacks {name}")
                value = each.default_factory()
            object.__setattr__(self, name, value)

    def key_values(self) -> tuple[tuple[str, Any], ...]:
        """In the order of the file."""
        return tuple((name, getattr(self, name)) for name in self.__dataclass_fields__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.key_values())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Section) and type(self) is type(other) and self.key_values() == other.key_values()

    def __hash__(self) -> int:
        return hash(self.key_values())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"{type(self).__name__}.{name} can't be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"{type(self).__name__}.{name} can't be deleted")


@dataclass(frozen=True, slots=True)
class AxisValue:
    """One value of an axis, with what it adds to a command."""

    name: str  # as written in cell names: "v2_full", "3"
    value: Scalar  # with its type, for JSON
    args: str = ""  # the text behind {axis.args}
    env: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[str, ...] = ()
    note: str = ""
    proxy: str = ""  # of a split: what it stands for
    config: str = ""  # of a variant: the file behind {config_file}


@dataclass(frozen=True, slots=True)
class Axis:
    name: str
    values: tuple[AxisValue, ...]


class Slots(Section):
    """Where runs may go. `gpus` None means auto: all that nobody else uses."""

    gpus: tuple[int, ...] | None = None
    per_gpu: int = 1
    cpus: int = 1


class Money(Section):
    price: float = 0.0  # for one hour of `per`
    currency: str = "CNY"
    per: Literal["gpu", "machine"] = "gpu"
    budget: float | None = None
    paid: float | None = None
    since: str | None = None  # ISO time with zone
    at_cap: Literal["hold", "stop"] = "hold"


class WandbSettings(Section):
    """How runs use W&B. Without a mode: offline, unless the environment of `up` says otherwise."""

    folder: str  # absolute: its cache
    mode: str = ""
    entity: str = ""
    project: str = ""


class SlotUse(Section):
    """Slots one cell takes. Both None: one slot of the campaign's kind."""

    gpu: int | None = None
    cpu: int | None = None

    def take(self, *, has_gpus: bool) -> tuple[int, int]:
        """(gpu slots, cpu slots). A job that asks for nothing takes one GPU where there are any, else one CPU slot."""
        gpu = self.gpu if self.gpu is not None else (1 if has_gpus and self.cpu is None else 0)
        cpu = self.cpu if self.cpu is not None else (0 if gpu else 1)
        return gpu, cpu


class DeclaredProgress(Section):
    kind: ProgressKind
    path: str  # relative to the output, may be a glob; for stdout the regex
    step: str | None = None  # key or column that holds the step
    every_s: float | None = None  # declared period, in seconds
    scale: float = 1.0  # logged step x scale = the job's step


class StepProof(Section):
    min: str  # a template: "{steps}" or a number
    within: float = 0.0  # share of `min` that may be missing: 2% is 0.02


class CheckpointProof(Section):
    path: str
    saved_after: float = 0.0  # share of the run: 90% is 0.9


class Proof(Section):
    """What turns exit 0 into DONE. Empty: exit 0 is enough."""

    step: StepProof | None = None
    checkpoint: CheckpointProof | None = None
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.step or self.checkpoint or self.files)


class BestOf(Section):
    """Where another result is best: there a value is taken, or a checkpoint chosen."""

    best: str  # a result
    better: Better | None = None  # of that result, where the decision says it


class TakenAt(Section):
    at: BestOf


class DeclaredResult(Section):
    name: str
    kind: Literal["json", "jsonl", "csv", "npz", "stdout"]
    path: str
    key: str | None = None
    reduce: Literal["last", "mean", "min", "max"] | TakenAt = "last"
    grain: float | None = None  # the step between values that it can have; None: as its values look
    min: float | None = None  # its bounds, where runs may end by nature
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    axes: tuple[str, ...]
    command: tuple[str, ...]  # words, placeholders still in; one word when shell is true
    exclude: tuple[Mapping[str, str], ...] = ()  # axis name -> value name
    needs: tuple[str, ...] = ()
    steps: int | None = None
    within: tuple[str, ...] = ()  # words put before the command
    cwd: str | None = None  # absolute; None: the campaign's folder
    config: str = ""  # absolute: what `edits:` of axis values change
    configs: Mapping[str, str] = field(default_factory=dict)  # combination of edited values -> its config file
    resume: tuple[str, ...] | None = None
    shell: bool = False
    uses: SlotUse = SlotUse()
    output: str = "{out}"
    mkdir: bool = True
    artifacts: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    progress: tuple[DeclaredProgress, ...] = ()
    proof: Proof = Proof()
    results: tuple[DeclaredResult, ...] = ()
    max_retries: int = 3  # retry: {max: N}: how often Muster retries by itself
    on_stall: Literal["notify", "restart"] = "notify"
    grace_s: float | None = None
    timeout_s: float | None = None

    @property
    def asks_proof(self) -> bool:
        """Exit 0 alone does not make a cell DONE: a declared result must be there too."""
        return bool(self.proof or self.results)


class PrimaryMetric(Section):
    metric: str  # a result
    split: str | None = None
    job: str | None = None  # that measures it, where several do
    better: Better = field(kw_only=True)


class MetricLimit(Section):
    """What a config must keep to be feasible: at most `max`, or at least `min`."""

    metric: str
    split: str | None = None
    job: str | None = None
    max: float | None = None
    min: float | None = None
    cap: float | None = None  # the worst value that can occur

    @property
    def bound(self) -> float | None:
        return self.min if self.max is None else self.max

    @property
    def better(self) -> Better:
        return "higher" if self.max is None else "lower"


class DeclaredDecision(Section):
    primary: PrimaryMetric
    baseline: str  # a value of the axis `config`
    limit: MetricLimit | None = None
    delta: float | None = None  # the smallest difference that matters
    checkpoint: Literal["last"] | BestOf = "last"
    alpha: float = 0.05  # all looks together
    looks: tuple[int, ...] = (5, 10)  # numbers of seeds
    power: float = 0.8
    factors: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)  # config -> factor -> level
    notes: tuple[str, ...] = ()

    @property
    def best_by(self) -> str:
        """The result that chooses the checkpoint; "": the last one is evaluated."""
        return self.checkpoint.best if isinstance(self.checkpoint, BestOf) else ""

    @property
    def metrics(self) -> dict[str, Better]:
        """What is decided on, and which direction of it is better; the limit first."""
        limit = {self.limit.metric: self.limit.better} if self.limit else {}
        return limit | {self.primary.metric: self.primary.better}


class DeclaredReport(Section):
    columns: tuple[str, ...] = ()  # SPLIT/RESULT or JOB/RESULT
    documents: tuple[str, ...] = ()  # files whose bound numbers are kept up to date


class LoopKeep(Section):
    """Which runs the next round builds on."""

    top: int | None = None  # how many; None: all of the last round
    by: str = field(kw_only=True)  # an expression
    better: Better = "higher"


class LoopRule(Section):
    when: str  # a condition
    edit: tuple[str, ...]
    reason: str
    priority: int = 0  # higher ones come first; else in the order that they are written in
    limit: int | None = None  # how often it may fire along one lineage
    name: str | None = None

    @property
    def id(self) -> str:
        """By which a lineage remembers it, wherever it stands in the file."""
        return self.name or f"{self.when} -> {', '.join(self.edit)}"


class LoopDefault(Section):
    """What is proposed where no rule has anything to propose."""

    edit: tuple[str, ...]
    reason: str


class SearchDimension(Section):
    """What one path of the config may be: a range, or values."""

    low: int | float | None = None
    high: int | float | None = None
    step: int | float | None = None
    log: bool = False
    values: tuple[Scalar, ...] | None = None


class LoopSearch(Section):
    space: Mapping[str, SearchDimension]
    sampler: Literal["tpe", "gp", "random"] = "tpe"
    trials_per_round: int = 4
    seed: int = 0


class LoopStop(Section):
    no_gain: int | None = None  # rounds
    target: str | None = None  # a condition: one run that meets it ends the loop


class LoopPrune(Section):
    key: str | None = None  # None: the one that `keep: {by}` is about
    after: int = 0  # a run is left alone until it has come that far
    least: int = 4  # others that must have come as far


class DeclaredLoop(Section):
    job: str
    base: tuple[str, ...]  # files, globs, or @LIST
    rounds: int = 1
    variants_per_run: int = 1
    repeats: int = 1
    keep: LoopKeep | None = None
    use: str | None = None  # a rule set that comes with Muster
    rules: tuple[LoopRule, ...] = ()
    default: LoopDefault | None = None
    search: LoopSearch | None = None  # instead of rules
    propose: str | None = None  # a function, instead of rules
    stop: LoopStop = LoopStop()
    prune: LoopPrune | None = None

    @property
    def top(self) -> int | None:
        return self.keep.top if self.keep else None

    @property
    def by(self) -> str:
        """The expression that ranks; "": nothing does."""
        return self.keep.by if self.keep else ""

    @property
    def better(self) -> Better:
        return self.keep.better if self.keep else "higher"

    @property
    def per_run(self) -> int:
        """Proposals from each run at most."""
        return self.search.trials_per_round if self.search else self.variants_per_run


class GateSource(Section):
    """The metric stream that a gate reads: one of the first four says of what kind it is, and where."""

    jsonl: str | None = None
    csv: str | None = None
    wandb: str | None = None
    tensorboard: str | None = None
    step: str = "step"

    @property
    def place(self) -> tuple[str, str]:
        """(kind, path)"""
        known = (("jsonl", self.jsonl), ("csv", self.csv), ("wandb", self.wandb), ("tensorboard", self.tensorboard))
        return next((kind, path) for kind, path in known if path)


class GateBounds(Section):
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    window: str | None = None  # what the last values are taken over: `median 4`


class GateCriterion(GateBounds):
    key: str = field(kw_only=True)
    by_stage: Mapping[str, GateBounds] = field(default_factory=dict)


class GateFreeze(Section):
    """Steps after a change in which nothing is decided."""

    advance: int = 0
    fall_back: int = 0


class GateRules(Section):
    """What a gate decides by. `schedule` and `curriculum`: as written, in the notation or as mappings of `stages`."""

    stage: str | None = None  # the key that holds the stage's name
    schedule: str | tuple[Mapping[str, object], ...] | None = None
    curriculum: str | tuple[Mapping[str, object], ...] | None = None
    iterations: int | None = None  # of a run; None: the job's steps
    every: int | None = None  # iterations from one row of the stream to the next
    success: tuple[GateCriterion, ...] = ()  # all must hold
    failure: tuple[GateCriterion, ...] = ()  # any is enough
    wins: Literal["failure", "success"] = "failure"  # where both hold
    required: int = 1  # successes in a row that advance
    tolerance: int | Mapping[str, int] = 0  # failures in a row that are borne, in all or by stage
    allowance: tuple[int, ...] = ()  # failures that each phase bears in all
    freeze: int | GateFreeze = 0
    phases: int | None = None  # None: no last one


class DeclaredGate(GateRules):
    job: str = field(kw_only=True)
    read: GateSource = field(kw_only=True)
    act: Literal["notify", "stop", "prune"] = "notify"
    lets: tuple[str, ...] = ()  # jobs that start only where the gate has opened


class DeclaredFinish(Section):
    report: bool = False
    docs: bool = False
    run: tuple[str, ...] = ()
    notify: bool = False
    shutdown: bool | str = False  # a text: the command for it
    countdown: float = 60.0  # seconds
    others: Literal["wait", "ignore"] = "wait"  # what the work of other users does to a power-off


def section_as_written(section: object) -> Any:
    """As JSON and YAML have it, and as snapshots hold it: keys without a value are left out."""
    if isinstance(section, Section):
        return {name: section_as_written(value) for name, value in section.key_values() if value is not None}
    if isinstance(section, Mapping):
        return {key: section_as_written(value) for key, value in section.items()}
    return [section_as_written(each) for each in section] if isinstance(section, list | tuple) else section


@dataclass(frozen=True, slots=True)
class Campaign:
    name: str
    axes: tuple[Axis, ...]
    jobs: tuple[Job, ...]
    language: Literal["zh", "en"] = "en"
    env: Mapping[str, str] = field(default_factory=dict)
    slots: Slots = Slots()
    money: Money | None = None
    wandb: WandbSettings | None = None  # declared, or because there is a loop
    decision: DeclaredDecision | None = None
    report: DeclaredReport | None = None
    loop: DeclaredLoop | None = None
    gates: Mapping[str, DeclaredGate] | None = None
    notify: tuple[str | Mapping[str, object], ...] = ()  # as written: of channels that none knows, too
    finish: DeclaredFinish | None = None
    log_max: int | None = None  # bytes of each log of an attempt, beyond which its middle is cut out

    def axis(self, name: str) -> Axis:
        return next(axis for axis in self.axes if axis.name == name)

    def job(self, name: str) -> Job:
        return next(job for job in self.jobs if job.name == name)

    @property
    def documents(self) -> tuple[str, ...]:
        """Texts that it names; their bound numbers are kept up to date."""
        return self.report.documents if self.report else ()

    @property
    def notice_commands(self) -> dict[int, str]:
        """What is run to tell somebody, by its place in `notify:`; no other channel is known."""
        channels = enumerate(self.notify)
        return {at: str(each["run"]) for at, each in channels if isinstance(each, Mapping) and each.get("run")}


@dataclass(frozen=True, slots=True)
class Parsed:
    """What reading a campaign file gives."""

    campaign: Campaign
    warnings: tuple[Mistake, ...] = ()
