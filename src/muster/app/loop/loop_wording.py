"""The wording of a loop's report: scores with as many digits as their noise allows, and recorded reasons in the
reader's language.

Reasons are recorded in English, where they arise. The forms that are often met (why a run died, why nothing was
proposed, what a search drew) have a text in each language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from muster.app.facts.report_analysis import choose_column_format
from muster.app.loop.loop_facts import LoopFacts, LoopVariant
from muster.locales import load_texts
from muster.stats.samples import Sample
from muster.text.catalogue import Catalogue
from muster.text.escape_markup import as_one_safe_line, escape_sentence
from muster.text.number_format import ColumnFormat
from muster.text.phrases import Phrase, english_text, translate
from muster.text.sentences import format_inline_code

_NO_NUMBER = "what it printed holds no number"
_NAME_GROUP = r"(?P<name>\S+)"
RECORDED_FORMS = tuple(
    (name, re.compile(form, re.DOTALL))
    for name, form in (
        # engine/judge/cause_rules.py
        (
            "exit",
            r"(?:the command exited with|it ended with exit code) (?P<n>\d+)(?:, as its launcher reports)?(?:; .+)?",
        ),
        ("raised", r"it ended with (?P<kind>[\w.]+)"),
        ("raised_said", r"it ended with (?P<kind>[\w.]+): (?P<said>.+)"),
        ("signal", r"killed by signal (?P<n>\d+) \((?P<kind>\w+)\); who sent it is not known"),
        ("memory", r"killed by the kernel for lack of memory: .+"),
        ("gpu_memory", r"the GPU's memory did not suffice(?:;.+)?"),
        ("disk", r"no space was left where it wrote, or a quota was reached"),
        ("not_finite", r"a number that it computes with became NaN or infinite.*"),
        ("proof", r"exit 0, but its proof fails: (?P<said>.+)"),
        ("ended", r"(?P<cell>\S+) is (?P<kind>[A-Z_]+): (?P<why>.+)"),
        # app/loop/propose_round.py, app/metrics/cell_history.py, rules/evaluate_expressions.py
        ("never_ran", r"it never ran"),
        ("nothing", r"nothing that it logged is in [^:]+: (?P<files>[^;]+)"),
        ("nothing_printed", rf"nothing that it logged is in [^:]+: (?P<files>[^;]+); {_NO_NUMBER}"),
        ("no_value", r"no value in (?P<path>\S+)"),
        ("not_logged", r'nothing logged "(?P<metric>[^"]+)"(?:; .+)?'),
        # app/loop/next_round.py
        ("tried", r"every config that was proposed has been tried before"),
        ("no_run", r"there is no run to build on"),
        ("false", r"(?P<reason>.+): (?P<test>[^:]+): false"),
        ("in_vain", r"(?P<reason>.+): [^:]+: true, but (?P<said>.+)"),
        ("default", r"(?P<reason>.+): no rule (?:fired|that fired has anything to propose), but (?P<said>.+)"),
        ("unknown", r"(?P<reason>.+): [^:]+: unknown \((?P<why>.+)\)"),
        # app/loop/search_proposer.py, app/loop/loop_facts.py
        ("points", rf"all (?P<n>\d+) points of {_NAME_GROUP} have been tried"),
        ("random", r"drawn at random"),
        ("startup", r"drawn at random, (?P<kind>\w+) begins with (?P<n>\d+) scores"),
        ("drawn", rf"(?P<kind>\w+) of (?P<n>\d+) scores, the best (?P<score>\S+) of {_NAME_GROUP}"),
        ("search", r"points of the space, drawn by (?P<kind>\w+)"),
        ("various", r"each for a reason of its own"),
    )
)


# phrase -> its form, and which parameter stands for which part
_FORMS_BY_CODE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "judge.command_exited": ("exit", {"n": "code"}),
    "judge.command_exited_launcher_reports": ("exit", {"n": "number"}),
    "judge.ended_with_exception": ("raised", {"kind": "type"}),
    "judge.ended_with_exception_said": ("raised_said", {"kind": "type", "said": "said"}),
    "judge.kernel_log_names": ("memory", {}),
    "judge.oom_killed_as_counted": ("memory", {}),
    "judge.oom_killed_as_told": ("memory", {}),
    "judge.gpus_memory_did_not_suffice": ("gpu_memory", {}),
    "judge.no_space_left_where_wrote_quota": ("disk", {}),
    "judge.number_computes_became_nan_infinite": ("not_finite", {}),
    "judge.exit_0_but_proof_fails": ("proof", {"said": "failed"}),
}


def match_recorded_forms(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The names of those that it has, and what is in their places."""
    for name, form in RECORDED_FORMS:
        if found := form.fullmatch(text):
            yield name, found.groupdict()


# as app/loop/next_round.py records them
_STOP_REASONS = (
    ("rounds", re.compile(r"all (?P<n>\d+) rounds are done")),
    ("one", re.compile(r"the one round is done")),
    ("target", re.compile(r"the target is reached: (?P<target>.+) holds for (?P<name>\S+)")),
    (
        "no_gain",
        re.compile(
            r"no gain in (?P<n>\d+) rounds?: (?P<by>.+) is still best with (?P<name>\S+) "
            r"\((?P<score>.+)\)"
        ),
    ),
    (
        "open",
        re.compile(
            r"round (?P<round>\d+) is not over, (?P<k>\d+) of (?P<n>\d+) runs? ha(?:s|ve) no end yet: "
            r"(?P<why>.+)",
            re.DOTALL,
        ),
    ),
    ("none", re.compile(r"no proposals because (?P<none>.+)", re.DOTALL)),
)
_SILENT = re.compile(r"(?P<k>\d+) of (?P<n>\d+) runs? left no readable history: .+", re.DOTALL)
_MORE = re.compile(r"and \d+ more")
_UNBARRED = re.compile(r"(?<!\\)\|")


class LoopWords(Catalogue):
    def __init__(self, facts: LoopFacts) -> None:
        super().__init__(facts.language, load_texts("report", facts.language))
        self.format = _common_score_format(facts)
        gains = [each.gain for each in facts.variants if each.gain is not None]
        finest = max(self.format.decimals, choose_column_format([_sample_of_values(gains)]).decimals if gains else 0)
        self.gain_format = ColumnFormat(min(finest, self.format.decimals + 1), self.format.scientific)
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
        for name, pattern in _STOP_REASONS:
            if found := pattern.fullmatch(why):
                parts = {key: self._part(key, text) for key, text in found.groupdict().items()}
                return self(f"loop.stop.{name}", **parts)
        return self.recorded(why)

    def recorded(self, text: str, most: int | None = None) -> str:
        """A recorded reason in a sentence, of about `most` characters; what has no words here is set off."""
        if told := self._known_phrase(text, most):
            return told
        text = text if most is None else cut_at_word_end(english_text(text), most)
        return self.known(text) or self("loop.recorded", text=escape_sentence(translate(text, self.language)))

    def _known_phrase(self, text: str, most: int | None) -> str:
        """By its code; empty: it has none, or it needs no other words here."""
        form = _FORMS_BY_CODE.get(text.code) if isinstance(text, Phrase) else None
        if not isinstance(text, Phrase) or form is None or not self.has(f"recorded.{form[0]}"):
            return ""
        told = {part: str(translate(value, self.language)) for part, value in text.params.items()}
        cut = {part: value if most is None else cut_at_word_end(value, most) for part, value in told.items()}
        return self(f"recorded.{form[0]}", **{part: self._part(part, cut[param]) for part, param in form[1].items()})

    def known(self, text: str) -> str:
        """Empty: there are no words for it. A text without a code: of a log of version 0.1, or put together."""
        if told := self._known_phrase(text, None):
            return told
        for name, parts in match_recorded_forms(english_text(text)):
            if self.has(f"recorded.{name}"):
                return self(f"recorded.{name}", **{key: self._part(key, each) for key, each in parts.items()})
        return ""

    def in_picture(self, reason: str) -> str:
        """Where nothing is set as code."""
        return self.known(reason).replace("`", "") or as_one_safe_line(reason)

    def _part(self, key: str, text: str) -> object:
        if key in ("n", "k", "round"):
            return int(text)
        if key == "none":
            return self._no_proposals(text)
        if key == "why":
            return self("semicolon").join(map(self.recorded, text.split("; ")))
        return escape_sentence(text) if key in ("score", "reason", "said", "kind") else format_inline_code(text)

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


def escape_table_bars(text: str) -> str:
    """A sentence in a table: also what stands in backticks may have no bar in it."""
    return _UNBARRED.sub(r"\\|", text)


def cut_at_word_end(text: str, most: int) -> str:
    """About so many characters: names and paths are not cut."""
    line = as_one_safe_line(text)
    end = line.find(" ", most) if len(line) > most else -1
    return line if end < 0 else line[:end].rstrip(",;:") + " …"


def _common_score_format(facts: LoopFacts) -> ColumnFormat:
    """By a usual spread: one pair of seeds that agree by chance must not give digits to all."""
    repeated = sorted((each for each in facts.variants if each.sd), key=lambda each: each.sd or 0.0)
    shown = [repeated[len(repeated) // 2]] if repeated else facts.variants
    return choose_column_format(_sample_of_values(each.values) for each in shown)


def _sample_of_values(values: object) -> Sample:
    assert isinstance(values, list | tuple)
    return Sample("", "", "", {str(at): value for at, value in enumerate(values)})
