"""How a loop's report says things: its scores with as many digits as their noise allows, and why it stopped."""

from __future__ import annotations

import re

from muster.report.loop_facts import LoopFacts, LoopVariant
from muster.report.numbers import Format, column_format
from muster.report.record_wording import code, plain
from muster.report.words import Words
from muster.stats.sample import Sample

# as acts/next_round.py records them
_STOPS = (
    ("rounds", re.compile(r"all (?P<n>\d+) rounds are done")),
    ("one", re.compile(r"the one round is done")),
    ("target", re.compile(r"the target is reached: (?P<target>.+) holds for (?P<name>\S+)")),
    ("no_gain", re.compile(r"no gain in (?P<n>\d+) rounds?: (?P<by>.+) is still best with (?P<name>\S+) "
                           r"\((?P<score>.+)\)")),
    ("open", re.compile(r"round (?P<round>\d+) is not over, (?P<k>\d+) of (?P<n>\d+) runs? ha(?:s|ve) no end yet: "
                        r"(?P<why>.+)", re.DOTALL)),
    ("none", re.compile(r"no proposals because (?P<why>.+)", re.DOTALL)),
)  # fmt: skip


class Say(Words):
    def __init__(self, facts: LoopFacts) -> None:
        super().__init__(facts.language)
        self.format = _format(facts)
        gains = [each.gain for each in facts.variants if each.gain is not None]
        finest = max(self.format.decimals, column_format([_sample(gains)]).decimals if gains else 0)
        self.gain_format = Format(min(finest, self.format.decimals + 1), self.format.scientific)

    def score(self, of: LoopVariant) -> str:
        """In a sentence."""
        if of.sd is None:
            return self("loop.score_one", mean=self.format(of.mean))
        seeds = self.count("loop_seed", of.n)
        return self("loop.score", mean=self.format(of.mean), sd=self.format.spread(of.sd), seeds=seeds)

    def short(self, of: LoopVariant) -> str:
        """In a table or a picture: `0.72 ± 0.03 (n = 3)`."""
        mean = self.format(of.mean)
        return mean if of.sd is None else f"{mean} ± {self.format.spread(of.sd)} (n = {of.n})"

    def signed(self, gain: float | None) -> str:
        return "—" if gain is None else self.gain_format.signed(gain)

    def spread(self, sd: float) -> str:
        return self.format.spread(sd) if self.format(sd) != self.format(0.0) else f"{sd:.2g}"

    def stop(self, why: str) -> str:
        """A recorded reason in this language; what is not known is told as it was recorded."""
        for name, pattern in _STOPS:
            found = pattern.fullmatch(why)
            if found:
                parts = {key: _part(key, text) for key, text in found.groupdict().items()}
                return self(f"loop.stop.{name}", **parts)
        return plain(why)


def _format(facts: LoopFacts) -> Format:
    """By a usual spread: one pair of seeds that agree by chance must not give digits to all."""
    repeated = sorted((each for each in facts.variants if each.sd), key=lambda each: each.sd or 0.0)
    shown = [repeated[len(repeated) // 2]] if repeated else facts.variants
    return column_format(_sample(each.values) for each in shown)


def _part(key: str, text: str) -> object:
    if key in ("n", "k", "round"):
        return int(text)
    return plain(text) if key in ("why", "score") else code(text)


def _sample(values: object) -> Sample:
    assert isinstance(values, list | tuple)
    return Sample("", "", "", {str(at): value for at, value in enumerate(values)})
