"""Axes and environment: names, values that YAML readers disagree about, values that are the same."""

from __future__ import annotations

import math
import re

from muster.model.cell import LONGEST_VALUE, escape_cell_value
from muster.spec.lint_context import RESERVED_NAMES, LintContext, WrittenValue, written_values
from muster.spec.yaml_tree import NodePath, Scalar, has_leading_zero, shorten_text, yaml11_reading
from muster.text.command_template import find_shell_expansion

NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPEAKS_OF_PROXY = re.compile(r"(?<!not a )(?<!no )\bprox(?:y|ies)\b|(?<!不是)(?<!非)代理", re.IGNORECASE)
_NAME_HINT = "letters, digits, '_' and '-', and a letter first"


def lint_axes(lint: LintContext) -> None:
    for key in lint.whole.keys(("axes",)):
        _lint_axis_name(lint, key.text)
    for name in lint.model.axes:
        values = written_values(lint.model, lint.document, name)
        if not values and not lint.wrong_below(("axes", name)):
            lint.add(("axes", name), f"axis '{name}' has no values", "give it one value at least", key=True)
        for value in values:
            _lint_axis_value(lint, name, value)
            if value.settings.env:
                lint_env(lint, (*value.path, "env"))
            if value.settings.edits and not _has_config_to_edit(lint, name):
                what = f"the edits of {name} {value.scalar.text} change nothing: no job with this axis has a config"
                hint = "add `config: FILE` to the job, and {config_file} to its command"
                lint.add((*value.path, "edits"), what, hint, key=True)
            _lint_proxy(lint, name, value)
        _lint_equal_values(lint, values)
        if not any(name in (job.axes or ()) for job in lint.model.jobs.values()) and not lint.wrong_below(("jobs",)):
            lint.warn(("axes", name), f"axis '{name}' is used by no job", "add it to the axes of a job", key=True)


def _lint_axis_name(lint: LintContext, name: str) -> None:
    path: NodePath = ("axes", name)
    if not NAME_PATTERN.fullmatch(name):
        lint.add(path, f"{shorten_text(name)} can't be the name of an axis", _NAME_HINT, key=True)
    elif name in RESERVED_NAMES:
        lint.add(
            path, f"an axis can't be named '{name}': {{{name}}} means something else", "choose another name", key=True
        )
    elif name in lint.jobs:
        lint.add(path, f"'{name}' is the name of an axis and of a job", "rename one of them", key=True)
    elif name == "variant" and lint.model.loop:
        lint.add(path, "the loop makes the axis 'variant' itself", "rename this axis", key=True)


def _lint_proxy(lint: LintContext, axis: str, value: WrittenValue) -> None:
    """A split that stands for something else says for what; nothing else can be a proxy."""
    path, named = (*value.path, "proxy"), f"{axis} {value.scalar.text}"
    if lint.document.has(path) and not lint.wrong_below(path):
        if axis != "split":
            what = f"{named} can't be a proxy: only a value of the axis 'split' stands for other data"
            lint.add(path, what, "write it as a `note:`", key=True)
        elif not value.settings.proxy.strip():
            what = f"the proxy of {named} is empty: what it stands for is not said"
            lint.add(path, what, 'write what it stands for: proxy: "level=2 stands for out-of-distribution"')
    elif axis == "split" and _SPEAKS_OF_PROXY.search(value.settings.note):
        what = f"the note of {named} speaks of a proxy; a note is only a note, and reports don't call {named} a proxy"
        lint.warn((*value.path, "note"), what, "write `proxy:` instead of `note:`", key=True)


def _has_config_to_edit(lint: LintContext, axis: str) -> bool:
    jobs = lint.model.jobs.items()
    return any(axis in (job.axes or ()) and lint.whole.has(("jobs", name, "config")) for name, job in jobs) or (
        lint.wrong_below(("jobs",))
    )


def _lint_axis_value(lint: LintContext, axis: str, value: WrittenValue) -> None:
    scalar, text = value.scalar, value.scalar.text
    key = isinstance(value.path[-1], str)
    if scalar.value is None:
        lint.add(value.path, "an axis value is empty", 'write a value, or "none" in quotes', key=key)
    elif not text:
        lint.add(value.path, "an axis value is empty", "a value becomes a part of the cell's name", key=key)
    elif not text.isprintable():
        lint.add(
            value.path,
            f"axis value {shorten_text(text)} has a control character or line break",
            _hint_for_short_name(),
            key=key,
        )
    elif len(escape_cell_value(text).encode()) > LONGEST_VALUE:
        size = len(escape_cell_value(text).encode())
        lint.add(
            value.path,
            f"an axis value of {size} bytes is too long, {LONGEST_VALUE} fit",
            _hint_for_short_name(),
            key=key,
        )
    elif not scalar.quoted:
        _lint_other_reading(lint, axis, value, key)


def _hint_for_short_name() -> str:
    return "give it a short name and put the long text in its `args`"


def _lint_other_reading(lint: LintContext, axis: str, value: WrittenValue, key: bool) -> None:
    """Unquoted values that are not what they look like."""
    number, text = value.scalar.value, value.scalar.text
    if has_leading_zero(text) or (text.startswith(("0o", "0x")) and isinstance(number, int)):
        hint = f'write {number}, or "{text}" in quotes to keep it as it is'
        lint.add(
            value.path, f"axis value {text} is read as {number} here and otherwise by other readers", hint, key=key
        )
    elif isinstance(number, float) and not math.isfinite(number):
        lint.add(value.path, f"axis value {text} is not a finite number", f'write "{text}" in quotes', key=key)
    elif axis in ("seed", "seeds") and isinstance(number, float | bool):
        hint = f"write {int(number)}" if number == int(number) else "write a whole number"
        lint.add(value.path, f"seed {text} is not a whole number", hint, key=key)
    elif isinstance(number, str) and (other := yaml11_reading(text)):
        what = f"axis value {text} is read as the text '{text}'; YAML 1.1 readers take it for {other}"
        lint.warn(value.path, what, f'write "{text}" in quotes', key=key)


def _lint_equal_values(lint: LintContext, values: list[WrittenValue]) -> None:
    names: dict[str, Scalar] = {}
    numbers: dict[object, Scalar] = {}
    for value in values:
        scalar = value.scalar
        if lint.wrong_below(value.path):
            continue
        number = None if isinstance(scalar.value, str) else (type(scalar.value) is bool, scalar.value)
        if first := names.get(scalar.text):
            alike = "is written twice" if first.quoted == scalar.quoted else "gives the same cell name twice"
            lint.add(
                value.path, f"axis value {shorten_text(scalar.text)} {alike}, first on line {first.line}", "keep one"
            )
        elif first := numbers.get(number) if number else None:
            lint.add(value.path, f"axis value {scalar.text} is the same as {first.text}", "keep one")
        names.setdefault(scalar.text, scalar)
        if number:
            numbers.setdefault(number, scalar)


def lint_env(lint: LintContext, path: NodePath) -> None:
    for key in lint.document.keys(path):
        here = (*path, key.text)
        node = lint.document.get(here)
        if not _ENV_NAME.fullmatch(key.text):
            lint.add(here, f"{shorten_text(key.text)} can't be the name of an environment variable", key=True)
        elif key.text.startswith("MUSTER_"):
            lint.add(here, f"{key.text} is Muster's own", "names that begin with MUSTER_ are set by Muster", key=True)
        elif key.text == "CUDA_VISIBLE_DEVICES":
            what = "CUDA_VISIBLE_DEVICES is set from the slot that a cell gets; this value has no effect"
            lint.warn(here, what, "name the GPUs in `slots: {gpus: [0, 1]}`", key=True)
        elif isinstance(node, Scalar) and not node.quoted and isinstance(node.value, str):
            other = yaml11_reading(node.text)
            if other in ("true", "false"):
                what = f"{node.text} is read as the text '{node.text}'; YAML 1.1 readers take it for {other}"
                lint.warn(here, what, f'write "{node.text}" in quotes')
        if isinstance(node, Scalar) and (part := find_shell_expansion(node.text)):
            what = f"no shell reads this: {part} in {key.text} stays as it is"
            lint.warn(here, what, "write the value itself; what `muster up` is called with is passed on anyway")
