"""A campaign as declared: axes, jobs, slots, money. Plain frozen data; `spec` makes it from text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Scalar = str | int | float | bool
ProgressKind = Literal["jsonl", "csv", "wandb", "tensorboard", "stdout", "files", "checkpoint"]


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


@dataclass(frozen=True, slots=True)
class Slots:
    """Where runs may go. `gpus` None means auto: all that nobody else uses."""

    gpus: tuple[int, ...] | None = None
    per_gpu: int = 1
    cpus: int = 1


@dataclass(frozen=True, slots=True)
class Money:
    price: float = 0.0  # for one hour of `per`
    currency: str = "CNY"
    per: Literal["gpu", "machine"] = "gpu"
    budget: float | None = None
    paid: float | None = None
    since: str | None = None  # ISO time with zone
    at_cap: Literal["hold", "stop"] = "hold"


@dataclass(frozen=True, slots=True)
class WandbSettings:
    """How runs use W&B. Without a mode: offline, unless the environment of `up` says otherwise."""

    folder: str  # absolute: its cache
    mode: str = ""
    entity: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class SlotUse:
    """Slots one cell takes. Both None: one slot of the campaign's kind."""

    gpu: int | None = None
    cpu: int | None = None

    def take(self, *, has_gpus: bool) -> tuple[int, int]:
        """(gpu slots, cpu slots). A job that asks for nothing takes one GPU where there are any, else one CPU slot."""
        gpu = self.gpu if self.gpu is not None else (1 if has_gpus and self.cpu is None else 0)
        cpu = self.cpu if self.cpu is not None else (0 if gpu else 1)
        return gpu, cpu


@dataclass(frozen=True, slots=True)
class DeclaredProgress:
    kind: ProgressKind
    path: str  # relative to the output, may be a glob; for stdout the regex
    step: str | None = None  # key or column that holds the step
    every_s: float | None = None  # declared period, in seconds
    scale: float = 1.0  # logged step x scale = the job's step


@dataclass(frozen=True, slots=True)
class StepProof:
    min: str  # a template: "{steps}" or a number
    within: float = 0.0  # share of `min` that may be missing: 2% is 0.02


@dataclass(frozen=True, slots=True)
class CheckpointProof:
    path: str
    saved_after: float = 0.0  # share of the run: 90% is 0.9


@dataclass(frozen=True, slots=True)
class Proof:
    """What turns exit 0 into DONE. Empty: exit 0 is enough."""

    step: StepProof | None = None
    checkpoint: CheckpointProof | None = None
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.step or self.checkpoint or self.files)


@dataclass(frozen=True, slots=True)
class DeclaredResult:
    name: str
    kind: Literal["json", "jsonl", "csv", "npz", "stdout"]
    path: str
    key: str | None = None
    reduce: Any = "last"  # last | mean | min | max | {"at": {"best": name}}
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
    # validated by spec, read by later rooms
    decision: Mapping[str, Any] | None = None
    report: Mapping[str, Any] | None = None
    loop: Mapping[str, Any] | None = None
    gates: Mapping[str, Any] | None = None
    notify: tuple[Any, ...] = ()
    finish: Mapping[str, Any] | None = None
    log_max: int | None = None  # bytes of each log of an attempt, beyond which its middle is cut out

    def axis(self, name: str) -> Axis:
        return next(axis for axis in self.axes if axis.name == name)

    def job(self, name: str) -> Job:
        return next(job for job in self.jobs if job.name == name)
