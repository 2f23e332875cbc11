"""What the lint modules share: the model with its places and the list of mistakes; checks of placeholders, of texts
that a shell reads, and of regular expressions that may take for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.model.errors import Mistake
from muster.spec.field_kinds import CommandWords, suggest_closest
from muster.spec.model_campaign import CampaignFile, ValueSettings
from muster.spec.model_job import JobSection
from muster.spec.yaml_tree import Items, NodePath, Scalar, Table, YamlDocument, dotted_path, shorten_text
from muster.text.command_template import find_stray_brace, list_placeholders, split_shell_words
from muster.text.regex_cost import regex_may_explode
from muster.text.shell_quoting import find_shell_placeholders, is_plain_shell_word, is_shell_integer
from muster.text.shell_syntax import ShellPlaceholder


@dataclass
class LintContext:
    model: CampaignFile
    document: YamlDocument  # what the model was made from
    whole: YamlDocument  # as written: names in it exist, even where what they stand for is wrong
    mistakes: list[Mistake]
    _wrong: set[str] = field(default_factory=set)  # paths of the errors so far, with all that they are below
    _indexed: int = 0  # of `mistakes`

    def add(
        self, path: NodePath, what: str, hint: str = "", *, key: bool = False, part: str = "", level: str = "error"
    ) -> None:
        place = self.document.place_of(path, part) if part else self.document.place(path, key=key)
        self.mistakes.append(Mistake(what, *place, hint, dotted_path(self.document.written(path)), level))

    def warn(self, path: NodePath, what: str, hint: str = "", *, key: bool = False, part: str = "") -> None:
        self.add(path, what, hint, key=key, part=part, level="warning")

    def unknown(self, path: NodePath, what: str, name: str, known: list[str], *, key: bool = False) -> None:
        """A name that stands for nothing."""
        hint = suggest_closest(name, known) or (f"known: {', '.join(known[:12])}" if known else "there is none")
        self.add(path, what, hint, key=key)

    def wrong_below(self, path: NodePath) -> bool:
        """Whether something at or under a path is wrong already: what follows from it is not worth telling."""
        for mistake in self.mistakes[self._indexed :]:
            if mistake.level == "error":
                parts = mistake.path.split(".")
                self._wrong.update(".".join(parts[:length]) for length in range(1, len(parts) + 1))
        self._indexed = len(self.mistakes)
        return dotted_path(self.document.written(path)) in self._wrong

    def misspelt(self, path: NodePath, key: str) -> bool:
        """Whether a missing key is there under a name that is nearly right, which was told already."""
        hint = suggest_closest(key, [key])
        return any(item.path.startswith(dotted_path(path) + ".") and item.hint == hint for item in self.mistakes)

    @property
    def axes(self) -> list[str]:
        names = [key.text for key in self.whole.keys(("axes",))]
        return [*names, "variant"] if self.model.loop else names

    @property
    def jobs(self) -> list[str]:
        return [key.text for key in self.whole.keys(("jobs",))]

    def axes_of(self, job: str) -> list[str]:
        """The job's axes, the growing one of a loop included."""
        axes, loop = list(self.model.jobs[job].axes or []), self.model.loop
        if loop is None or loop.job != job:
            return axes
        repeated = loop.repeats > 1 and "seed" not in axes
        return [*axes, "variant", *(["seed"] if repeated else [])]

    def values(self, axis: str) -> list[str]:
        return [scalar.text for scalar, _ in axis_scalars(self.whole, axis)]

    def results(self) -> dict[str, list[str]]:
        """Result names with the jobs that have them."""
        found: dict[str, list[str]] = {}
        for job in self.jobs:
            for key in self.whole.keys(("jobs", job, "results")):
                found.setdefault(key.text, []).append(job)
        return found


@dataclass(frozen=True, slots=True)
class WrittenValue:
    scalar: Scalar
    path: NodePath
    settings: ValueSettings = field(default_factory=ValueSettings)


def axis_scalars(document: YamlDocument, axis: str) -> Iterator[tuple[Scalar, NodePath]]:
    """The values of an axis as they stand in the file, whichever of its two forms it has."""
    node = document.get(("axes", axis))
    if isinstance(node, Items):
        for index, item in enumerate(node.items):
            if isinstance(item, Scalar) and item.value is not None:
                yield item, ("axes", axis, index)
    elif isinstance(node, Table):
        for key, _ in node.entries:
            yield key, ("axes", axis, key.text)


def written_values(model: CampaignFile, document: YamlDocument, axis: str) -> list[WrittenValue]:
    settings = model.axes[axis]
    return [
        WrittenValue(scalar, path, settings[scalar.text]) if isinstance(settings, dict) else WrittenValue(scalar, path)
        for scalar, path in axis_scalars(document, axis)
    ]


SLOW_PATTERN = (
    "on some lines this pattern tries more ways than a machine can: it repeats what repeats, or skips at many places"
)
SLOW_PATTERN_HINT = (
    "write what may be skipped, [^,]* for .*, and (?:a+)b for (?:a+)+b; such a line is given up after a second"
)


def lint_patterns(lint: LintContext, name: str, job: JobSection) -> None:
    for at, entry in enumerate(job.progress):
        if entry.stdout is not None and regex_may_explode(entry.stdout):
            lint.warn(("jobs", name, "progress", at, "stdout"), SLOW_PATTERN, SLOW_PATTERN_HINT)
    for key, result in job.results.items():
        if result.stdout is not None and regex_may_explode(result.stdout):
            lint.warn(("jobs", name, "results", key, "stdout"), SLOW_PATTERN, SLOW_PATTERN_HINT)


_NUMBERS = ("steps", "attempt", "port", "gpu", "device", "seed")
_SHELL_PROGRAM = re.compile(r"(?:.*/)?(?:ba|da|z|k)?sh")
# `sh -c`, `bash -lc` and `eval`, with nothing but a quote to come
_CODE_FOLLOWS = re.compile(
    r"(?:^|[\s;&|(!])(?:(?:[^\s;&|()]*/)?(?:ba|da|z|k)?sh(?:\s+-\w+)*\s+-\w*c|eval(?:\s[^;&|\n]*)?)\s*\Z"
)
_CHOSEN = ("last.checkpoint",)  # by a training, while it runs


def lint_shell(lint: LintContext, job: str, key: str, words: CommandWords, *, shell: bool) -> None:
    if words.is_list or not shell:
        _lint_second_shell(lint, job, key, words)
        return
    path: NodePath = ("jobs", job, key)
    text = words.texts[0]
    try:
        found = find_shell_placeholders(text)
    except ValueError as error:
        lint.add(path, str(error), "take it out")
        return
    for spot in found:
        mark = f"{{{spot.name}}}"
        place = _place_of_nth(lint, path, mark, text.count(mark, 0, spot.at))
        if spot.context == "refused":
            what = f"{mark} can't be put in safely here: {spot.why}"
            lint.mistakes.append(Mistake(what, *place, spot.hint, dotted_path(lint.document.written(path))))
        elif spot.context == "number" and (odd := _non_number_value(lint, job, spot)) is not None:
            what = f"{mark} stands in $(( )), where only a whole number is safe{odd}"
            hint = "do the sum in the program, or make it an axis of whole numbers"
            lint.mistakes.append(Mistake(what, *place, hint, dotted_path(lint.document.written(path))))
        elif spot.before and _CODE_FOLLOWS.search(spot.before) and (why := _shell_risk(lint, job, spot.name)):
            _warn_of_shell_code(lint, path, mark, why)


def _place_of_nth(lint: LintContext, path: NodePath, part: str, nth: int) -> tuple[int, int]:
    """Where it stands for the nth time, also on a later line of the text."""
    line, column = lint.document.place(path)
    for number, row in enumerate(lint.document.lines[line - 1 :], line):
        at = row.find(part, column - 1 if number == line else 0)
        while at >= 0:
            if nth == 0:
                return number, at + 1
            nth -= 1
            at = row.find(part, at + 1)
    return line, column


def _non_number_value(lint: LintContext, job: str, spot: ShellPlaceholder) -> str | None:
    """None: it is one, for all that is known before a run."""
    if spot.name in lint.model.axes and spot.name in lint.axes_of(job):
        odd = next((value for value in lint.values(spot.name) if not is_shell_integer(value)), None)
        return None if odd is None else f", and '{odd}' is none"
    return None if spot.name in _NUMBERS else ""


def _lint_second_shell(lint: LintContext, job: str, key: str, words: CommandWords) -> None:
    """`bash -c 'run {config}'`: Muster's words are safe, and then bash splits the last one again."""
    try:
        split = list(words.texts) if words.is_list else list(split_shell_words(words.texts[0]))
    except ValueError:  # an open quote was told
        return
    for at, word in enumerate(split):
        if at < 2 or not any(_SHELL_PROGRAM.fullmatch(each) for each in split[max(0, at - 4) : at - 1]):
            continue
        if not re.fullmatch(r"-\w*c", split[at - 1]):
            continue
        for name in dict.fromkeys(list_placeholders(word)):
            if why := _shell_risk(lint, job, name):
                _warn_of_shell_code(
                    lint, ("jobs", job, key, at) if words.is_list else ("jobs", job, key), f"{{{name}}}", why
                )


def _warn_of_shell_code(lint: LintContext, path: NodePath, mark: str, why: str) -> None:
    what = f"{mark} stands in a text that another shell reads as code: {why}"
    lint.warn(path, what, "hand it over as an argument: bash -c '... \"$1\"' _ " + mark, part=mark)


def _shell_risk(lint: LintContext, job: str, name: str) -> str:
    """Why a value may mean more to a shell than its text; "": it does not, for all that is known before a run."""
    odd = next(_unsafe_axis_values(lint, job, name), None)
    if odd is not None:
        return f"'{odd}' would not be one word to it"
    return "a training chooses its name" if name in _CHOSEN else ""


def _unsafe_axis_values(lint: LintContext, job: str, name: str) -> Iterator[str]:
    if name in lint.model.axes and name in lint.axes_of(job):
        yield from (value for value in lint.values(name) if not is_plain_shell_word(value))


RESERVED_NAMES = ("steps", "gpu", "device", "slot", "port", "out", "cell", "attempt", "config_file", "last")
_ALWAYS = ("gpu", "device", "slot", "port", "out", "cell", "attempt")
_LAST = ("last.output", "last.checkpoint")
_BRACES = "for a real brace write {{ and }}"


def allowed_placeholders(lint: LintContext, job: str, *, later: bool = False) -> list[str]:
    """Names that have a value in this job; `later` adds what only a later attempt has."""
    model = lint.model.jobs[job]
    axes = lint.axes_of(job)
    names = [*axes, *(f"{axis}.args" for axis in axes), *_ALWAYS]
    if model.steps is not None or lint.whole.has(("jobs", job, "steps")):
        names.append("steps")
    if _has_config_file(lint, job):
        names.append("config_file")
    if lint.model.loop and lint.model.loop.job == job and "seed" not in lint.axes:
        names.append("seed")  # 0 where nothing is repeated: `repeats:` may come and go
    names += [f"{need}.output" for need in model.needs]
    return [*names, *_LAST] if later else names


def _has_config_file(lint: LintContext, job: str) -> bool:
    if lint.model.loop is None and lint.whole.has(("loop",)):
        return True  # the loop is there but wrong
    if lint.model.loop and lint.model.loop.job == job:
        return True
    return lint.whole.has(("jobs", job, "config"))


def check_placeholders(lint: LintContext, job: str, path: NodePath, text: str, names: list[str]) -> None:
    """Tells every placeholder in a text that has no value in this job, and a lone brace."""
    known = set(names)
    for name in dict.fromkeys(list_placeholders(text)):
        if name not in known:
            what, hint = _explain_placeholder(lint, job, name, names)
            lint.add(path, what, hint, part=f"{{{name}}}")
    position = find_stray_brace(text)
    if position is not None:
        lint.add(path, f"a lone '{text[position]}' in {shorten_text(text[max(0, position - 20) :])}", _BRACES)


def _explain_placeholder(lint: LintContext, job: str, name: str, names: list[str]) -> tuple[str, str]:
    head, _, tail = name.partition(".")
    if tail == "output" and head in lint.jobs and head != job:
        return (
            f"{{{name}}}: job '{job}' does not need '{head}'",
            f"add '{head}' to the needs of '{job}'",
        )
    if tail in ("", "args") and head in lint.axes:
        return f"{{{name}}}: '{head}' is not an axis of job '{job}'", f"add '{head}' to the axes of '{job}'"
    if name == "steps":
        return f"{{steps}} is used, but job '{job}' has no steps", "add `steps:` to the job"
    if name in _LAST:
        return f"{{{name}}} has no value in a first attempt", "use it in `resume:` only"
    if name == "config_file":
        return (
            f"{{config_file}} has no value in job '{job}'",
            "add `config: FILE` to the job, or make it the loop's job",
        )
    hint = suggest_closest(name.strip(), names)
    return f"unknown placeholder {{{name}}}", hint.replace("'", "{", 1).replace("'", "}", 1) if hint else _BRACES
