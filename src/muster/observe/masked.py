"""What a run said, without secrets, before anything is concluded from it: all that is told rests on these texts."""

from __future__ import annotations

from dataclasses import replace

from muster.domain.reading import Aftermath
from muster.domain.sighting import Exit, ProofReading, Sighting
from muster.domain.verdict import Evidence
from muster.ports.known_secrets import mask, mask_tail


def masked_sighting(seen: Sighting) -> Sighting:
    """Only how it ended has texts from the run; what is seen of a living one is numbers and names of files."""
    if not (seen.exit or seen.aftermath or (seen.proof and seen.proof.evidence)):
        return seen
    return replace(
        seen,
        exit=seen.exit and _exit(seen.exit),
        aftermath=seen.aftermath and _aftermath(seen.aftermath),
        proof=seen.proof and masked_proof(seen.proof),
    )


def masked_proof(proof: ProofReading) -> ProofReading:
    return replace(proof, evidence=tuple(map(_evidence, proof.evidence))) if proof.evidence else proof


def _evidence(each: Evidence) -> Evidence:
    told = mask(each.reading)
    return each if told == each.reading else replace(each, reading=told)


def _exit(found: Exit) -> Exit:
    """`log` and `out` are the ends of longer texts."""
    error = found.exec_error and mask(found.exec_error)
    return replace(found, log=mask_tail(found.log), out=mask_tail(found.out), exec_error=error)


def _aftermath(found: Aftermath) -> Aftermath:
    return replace(found, err=mask_tail(found.err), out=mask_tail(found.out))
