"""How a loop's report says things: its scores with as many digits as their noise allows, and recorded reasons."""

from __future__ import annotations

import re

from muster.report.escape import one_line
from muster.report.loop_facts import LoopFacts, LoopVariant
from muster.report.loop_recorded import forms_of
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
    ("none", re.compile(r"no proposals because (?P<none>.+)", re.DOTALL)),
)  # fmt: skip
_SILENT = re.compile(r"(?P<k>\d+) of (?P<n>\d+) runs? left no readable history: .+", re.DOTALL)
_MORE = re.compile(r"and \d+ more")
_UNBARRED = re.compile(r"(?<!\\)\|")


class Say(Words):
    def __init__(self, facts: LoopFacts) -> None:
        super().__init__(facts.language)
        self.format = _format(facts)
        gains = [each.gain for each in facts.variants if each.gain is not None]
        finest = max(self.format.decimals, column_format([_sample(gains)]).decimals if gains else 0)
        self.gain_format = Format(min(finest, self.format.decimals + 1), self.format.scientific)
        self._named = tuple(run.cell + end for run in facts.runs for end in (": ", " is "))

    def unfinished(self, facts: LoopFacts) -> str:
        """`PARTIAL 3/12: ...`; empty: every run is over."""
        over = sum(run.over for run in facts.runs)
        return "" if facts.over else self("loop.unfinished", k=over, n=len(facts.runs))

    # -- scores

    def score(self, of: LoopVariant) -> str:
        """In a sentence."""
        if of.sd is None:
            return self("loop.score_one", mean=self.format(of.mean))
        seeds = self.count("loop_seed", of.n)
        return self("loop.score", mean=self.format(of.mean), sd=self.format.spread(of.sd), seeds=seeds)

    def short(self, of: LoopVariant) -> str:
        """In a table or a picture: `0.72 ± 0.03 (n = 3)`."""
        return self._mean(of) if of.sd is None else f"{self._mean(of)} (n = {of.n})"

    def inner(self, of: LoopVariant) -> str:
        """In brackets."""
        return self._mean(of) if of.sd is None else self("loop.inner", score=self._mean(of), n=of.n)

    def _mean(self, of: LoopVariant) -> str:
        mean = self.format(of.mean)
        return mean if of.sd is None else f"{mean} ± {self.format.spread(of.sd)}"

    def gain(self, gain: float) -> str:
        """Over its parent. In words: of a score that is better when lower, a sign would be read the wrong way."""
        shown = self.gain_format(abs(gain))
        if not float(shown):
            return self("loop.gain_none")
        return self("loop.gain_better" if gain > 0 else "loop.gain_worse", gain=shown)

    def signed(self, gain: float) -> str:
        return self.gain_format.signed(gain)

    def spread(self, sd: float) -> str:
        return self.format.spread(sd) if self.format(sd) != self.format(0.0) else f"{sd:.2g}"

    # -- what was recorded

    def stop(self, why: str) -> str:
        """Why no further round comes."""
        for name, pattern in _STOPS:
            if found := pattern.fullmatch(why):
                parts = {key: self._part(key, text) for key, text in found.groupdict().items()}
                return self(f"loop.stop.{name}", **parts)
        return self.recorded(why)

    def recorded(self, text: str) -> str:
        """A recorded reason in a sentence; what has no words in this language is set off, as it was recorded."""
        return self.known(text) or self("loop.recorded", text=plain(text))

    def known(self, text: str) -> str:
        """Empty: there are no words for it."""
        for name, parts in forms_of(text):
            if self.has(f"recorded.{name}"):
                return self(f"recorded.{name}", **{key: self._part(key, each) for key, each in parts.items()})
        return ""

    def in_picture(self, reason: str) -> str:
        """Where nothing is set as code."""
        return self.known(reason).replace("`", "") or one_line(reason)

    def _part(self, key: str, text: str) -> object:
        if key in ("n", "k", "round"):
            return int(text)
        if key == "none":
            return self._no_proposals(text)
        if key == "why":
            return self("semicolon").join(map(self.recorded, text.split("; ")))
        return plain(text) if key in ("score", "reason", "said", "kind") else code(text)

    def _no_proposals(self, why: str) -> str:
        """Its parts. Runs without a history are named among those in trouble, each with its cause."""
        told: list[str] = []
        naming = False
        for part in why.split("; "):
            silent = _SILENT.fullmatch(part)
            named = part.startswith(self._named) or _MORE.fullmatch(part)
            if silent:
                told.append(self("loop.stop.silent", k=int(silent["k"]), n=int(silent["n"])))
            elif not (naming and named):
                told.append(self.recorded(part))
            naming = bool(silent or (naming and named))
        return self("semicolon").join(told)


def in_cell(text: str) -> str:
    """A sentence in a table: also what stands in backticks may have no bar in it."""
    return _UNBARRED.sub(r"\\|", text)


def whole_words(text: str, most: int) -> str:
    """About so many characters: names and paths are not cut."""
    line = one_line(text)
    end = line.find(" ", most) if len(line) > most else -1
    return line if end < 0 else line[:end].rstrip(",;:") + " …"


def _format(facts: LoopFacts) -> Format:
    """By a usual spread: one pair of seeds that agree by chance must not give digits to all."""
    repeated = sorted((each for each in facts.variants if each.sd), key=lambda each: each.sd or 0.0)
    shown = [repeated[len(repeated) // 2]] if repeated else facts.variants
    return column_format(_sample(each.values) for each in shown)


def _sample(values: object) -> Sample:
    assert isinstance(values, list | tuple)
    return Sample("", "", "", {str(at): value for at, value in enumerate(values)})
