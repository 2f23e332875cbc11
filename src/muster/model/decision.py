"""A decision: who decided what, when and why. The database is folded from a list of them, `decisions.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Decision:
    """`kind` is one of

    epoch     a controller took over              start    an attempt was claimed
    campaign  a campaign text was taken in        settle   an attempt ended
    filter    what --only leaves out              adopt    a run that something else made was taken in
    intent    running or down                     end      a controller ended by itself
    finish    a step of the finish began or ended shutdown a wish to power off, its end, how far it has come
    gate      a gate over a run opened, fell back or bears no more failures, or such a word counts no more
    budget    how far it is used up was told      round    the variants of a loop's next round, or why there is none
    clock     the machine's clock was set
    rename    a value of an axis has another name; its cells keep what is done
    reread    a proof that failed after exit 0 was read again, because `proof:` or `results:` has changed
    redo      a DONE cell is run again; its completed attempt is superseded
    clean     what an attempt left, or what nobody names any more, is deleted
    refuse    a run that something else made was not taken in; what it took is known
    flag      a person accepted the red flags of one code, as they were then
    hold, release, retry, giveup, accept, stop, note: a person's word; found, notice: what a person should
    hear of; verdict: what is seen of a run has changed

    A log with a kind that this version does not know is of a newer Muster, and is not folded.
    """

    kind: str
    who: str
    reason: str = ""
    cell: str | None = None
    attempt: int | None = None
    epoch: int | None = None  # of the controller that decided; None: a person
    at: str = ""  # wall time, for display
    boot: float = 0.0
    data: Mapping[str, Any] = field(default_factory=dict)
    ref: str | None = None  # by which its author asks what became of it


LARGEST = 1 << 53  # number of an attempt or an epoch: whatever reads JSON has it exactly
EVENT_KINDS = ("note", "found", "notice", "verdict")  # these are kept, and change nothing


@dataclass(frozen=True, slots=True)
class Refusal:
    """A decision that came too late or against a rule: kept in the log, without effect."""

    decision: Decision
    because: str


OUTRUN_REASON = "a round of the loop was taken in meanwhile"
