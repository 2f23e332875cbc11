"""English: the journal."""

from __future__ import annotations

from collections.abc import Mapping

TEXTS: Mapping[str, str] = {
    "comma": ", ",
    "between": " ",
    "and_more": "{items} and {n} more",
    # -- sections
    "section.start": "Start",
    "section.observations": "Observations",
    "section.observations_after": "Observations (from {last})",
    "section.plan": "Plan",
    "section.findings": "Findings",
    "section.record": "Record",
    "section.learning": "Learning / next",
    # -- a new one
    "new.after": "{date} ({zone}): starts from the learning of {last}: {told}.",
    "new.first": "{date} ({zone}): the first journal of this folder.",
    "new.counts.fresh": "{n} new {n:point|points}",
    "new.counts.carried": "{n} carried",
    "new.counts.done": "{n} done",
    "new.counts.dropped": "{n} dropped",
    "new.counts.none": "no open point",
    "new.goal": "Goal: ",
    "new.missing": "There is no {names} in this folder.",
    "carried": "(carried {n} {n:time|times}, since v{since})",
    "hint.plan": "[ ] open   [x] done   [-] dropped: write (dropped: why) behind it. Ids stay; what is neither done "
    "nor dropped is carried into the next version.",
    "hint.observations": "what the last runs showed",
    "hint.findings": "what this version's runs show; `muster journal audit` compares the numbers with the artifacts",
    "hint.record": "`muster journal fill --run DIR` (or a cell) writes command, tables and figures here; "
    "text around the generated blocks stays as it is",
    "hint.learning": "a numbered list: each point becomes an observation and a plan of the next version",
}
