"""Stamps: the provenance of a derived file. Which cells, attempts, hashes and code it rests on, k of N; and for each
claim of its text, the cells behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.app.campaign.last_report import ReportVerdict
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class ReportClaim:
    """A sentence of a report and what it rests on: `muster trace` walks on from here."""

    id: str  # E1, as it stands in the text
    text: str
    cells: tuple[str, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportText:
    """A written report with its claims."""

    body: str
    claims: tuple[ReportClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointStamp:
    path: str
    sha256: str | None
    share: float | None = None  # of its training's time, when it was saved
    step: float | None = None  # that it holds
    steps_share: float | None = None  # of the steps that were wanted


@dataclass(frozen=True, slots=True)
class CellStamp:
    """A cell, the attempt that counts, and the files its numbers are read from. Of a loop also one that is not DONE."""

    cell: str
    attempt: int
    token: str
    definition: str
    folder: str  # of the attempt
    output: str | None = None
    adopted: bool = False
    commit: str | None = None
    dirty: str | None = None
    results: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, str | None] = field(default_factory=dict)  # path -> sha256
    checkpoint: CheckpointStamp | None = None
    needs: tuple[str, ...] = ()
    command: str = ""
    formerly: tuple[str, ...] = ()  # its names before it was renamed
    unread: tuple[str, ...] = ()  # results that no file vouched for when it was made
    code: str = ""  # what ran, in words: the commit, and what was not in it


@dataclass(frozen=True, slots=True)
class FileStamp:
    sha256: str
    kind: str  # table | figure | text
    cells: tuple[str, ...] | None = None  # None: all that the stamp names
    claims: tuple[ReportClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class StampBasis:
    """What everything that a command derives rests on."""

    campaign: str
    sections: Mapping[str, str]  # of campaign.yaml -> hash; those that matter
    cells: Mapping[str, CellStamp]
    k: int = 0
    n: int = 0
    missing: tuple[str, ...] = ()
    closed: bool = False  # it names all cells that its files rest on: what else there is does not matter
    accepted: str = ""  # hash of the red flags that people accepted
    cleared: tuple[str, ...] = ()  # of `missing`, those whose loss a person explained
    state: str = ""  # hash of every attempt and how it ended; only where a file tells of all of them


@dataclass(frozen=True, slots=True)
class Stamp:
    """Of all files that one command made at one time."""

    made: str  # report | cost | record
    command: str
    at: str
    version: str
    basis: StampBasis
    files: Mapping[str, FileStamp]  # relative to the campaign's folder
    token: str = ""  # of the attempt that made them, where a person's own job did
    cell: str = ""
    root: str = ""  # the campaign's folder when it was made; paths below it are relative on the disk
    muster: int = 1
    verdict: ReportVerdict | None = None  # of a report


def stamp_footer(basis: StampBasis, version: str, path: str) -> str:
    """For texts that travel without their stamp."""
    cells = phrase("count.cell", n=basis.n)
    params = {"k": basis.k, "cells": cells, "campaign": basis.campaign, "version": version, "path": path}
    if set(basis.missing) - set(basis.cleared):
        return phrase("campaign.stamp_footer_partial", n=basis.n, **params)
    return phrase("campaign.stamp_footer", **params)
