"""How a proof is read, told apart from what is executed: a mistake in it is mended without running anything again."""

from __future__ import annotations

import json
from dataclasses import asdict

from muster.domain.attempt import Attempt
from muster.domain.campaign import Job


def reading_hash(job: Job) -> str:
    """Of `proof:`, `results:` and the `progress:` that a proof may rest on. None of them is part of a definition."""
    import hashlib  # not at the top: `status` rarely needs it, and it loads OpenSSL

    read = [asdict(job.proof), [asdict(each) for each in job.results], [asdict(each) for each in job.progress]]
    return hashlib.sha256(json.dumps(read, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:12]


def only_proof_failed(attempt: Attempt) -> bool:
    """Its command ended with exit 0: what it did may be whole, and only how it was read wrong."""
    outcome = attempt.outcome
    if outcome is None or attempt.adopted or attempt.was_done:
        return False
    return outcome.exit_code == 0 and outcome.cause is not None and outcome.cause.kind == "early_exit"


def read_as(attempt: Attempt) -> str:
    """The reading that its verdict or the newest one after it rests on; empty: an older version wrote it."""
    return attempt.reread.read_as if attempt.reread else attempt.outcome.read_as if attempt.outcome else ""


def definition(hash_: str) -> str:
    """Of `<definition>-<code>`."""
    return hash_.partition("-")[0]
