"""Variants: the configs that a loop runs, where each came from, and how far the rounds have come."""

from __future__ import annotations

from dataclasses import dataclass

AXIS = "variant"
BASE, DEFAULT, PERSON, SEARCH = "base", "default", "a person", "search:"  # what made a variant, where no rule did


@dataclass(frozen=True, slots=True)
class Variant:
    """One value of the growing axis."""

    name: str
    config: str  # the file, absolute
    round: int
    digest: str  # of the file as it was proposed: no config is tried twice
    parent: str | None = None  # the variant it was made from; None: a base whose origin is not known
    edits: tuple[str, ...] = ()
    reason: str = ""
    by: str = BASE  # or DEFAULT, a rule's name, a search's, or PERSON
    notes: tuple[str, ...] = ()  # what the edits say: rounded, held at a bound
    source: str = ""  # of a base: the file that it is a copy of


@dataclass(frozen=True, slots=True)
class LoopRecord:
    """All rounds so far."""

    variants: tuple[Variant, ...] = ()
    round: int = 0  # the newest that was proposed; 0: none
    stopped: str = ""  # why no further round comes; "": one may
    most: int = 0  # rounds that a person asked for; 0: as the campaign says

    def variant(self, name: str) -> Variant:
        return next(each for each in self.variants if each.name == name)

    def of_round(self, number: int) -> list[Variant]:
        return [each for each in self.variants if each.round == number]

    def lineage(self, name: str) -> list[Variant]:
        """From the base to this one."""
        known = {each.name: each for each in self.variants}
        found: list[Variant] = []
        at = known.get(name)
        while at is not None and at not in found:
            found.insert(0, at)
            at = known.get(at.parent or "")
        return found
