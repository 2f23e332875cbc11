"""What follows a death, as a person is told it."""

from muster.engine.plan.retry import decide_retry
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Job
from muster.model.cell import Cell
from muster.model.verdict import Cause, VerdictState


def test_what_a_person_stopped_only_a_person_starts_again() -> None:
    """Not even where a file changed: so nobody is told that `muster up` would do it."""
    stopped = Attempt(
        "train/1", 1, "t", 1, ("cpu0",), "old", "", 0.0, "b", outcome=Outcome(VerdictState.DEAD, Cause("user_stop"))
    )
    record = CellRecord(Cell("train/1", "train", ()), 0, True, "new", (stopped,))
    following = decide_retry(record, Job("train", (), ("run",)))
    assert following.cause is None
    assert "`muster retry train/1 --because ...`" in following.why
    assert "muster up" not in following.why
