"""JSON, TOML and YAML with the place of every value, so that an edit keeps comments, order and the form of everything
else.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Sequence
from typing import Any

from muster.rules.config_paths import (
    DEEPEST_CONFIG,
    MOST_VALUES,
    ConfigPlace,
    ParsedConfig,
    UnreadableConfig,
    is_nested_too_deep,
    value_at_place,
)

_JSON_BLANK = re.compile(r"[ \t\r\n]*")
_JSON_CONFIG_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_JSON_ATOM = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|Infinity)|NaN|true|false|null")


def parse_json_config(text: str) -> ParsedConfig:
    config = ParsedConfig(text, "json", None)
    config.tree, end = _parse_json_value(config, _skip_json_blanks(text, 0), ())
    end = _skip_json_blanks(text, end)
    if end != len(text):
        raise _json_error(text, end, "there is more behind the end of it")
    return config


def _parse_json_value(config: ParsedConfig, at: int, where: ConfigPlace) -> tuple[Any, int]:
    text = config.text
    value: Any
    end: int
    if len(where) > DEEPEST_CONFIG:
        raise _json_error(text, at, "it is nested too deeply")
    first = text[at : at + 1]
    if first == "{":
        value, end = _parse_json_mapping(config, at + 1, where)
    elif first == "[":
        value, end = _parse_json_list(config, at + 1, where)
    elif first == '"':
        value, end = _parse_json_string(text, at)
    else:
        found = _JSON_ATOM.match(text, at)
        if not found:
            raise _json_error(text, at, "a value is missing" if at < len(text) else "it ends too early")
        value, end = _parse_json_atom(text, found), found.end()
    config.spans[where] = (at, end)
    return value, end


def _parse_json_atom(text: str, found: re.Match[str]) -> Any:
    try:
        return json.loads(found[0])
    except ValueError:  # zeros in front, or more digits than anybody reads
        raise _json_error(text, found.start(), f"{found[0][:20]} is no number") from None


def _parse_json_mapping(config: ParsedConfig, at: int, where: ConfigPlace) -> tuple[dict[str, Any], int]:
    text = config.text
    found: dict[str, Any] = {}
    at = _skip_json_blanks(text, at)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _json_error(text, at, "a key in double quotes is missing")
        key, end = _parse_json_string(text, at)
        if key in found:
            raise _json_error(text, at, f"the key {key!r} is there twice")
        at = _skip_json_blanks(text, end)
        if text[at : at + 1] != ":":
            raise _json_error(text, at, f"a colon is missing behind {key!r}")
        found[key], at = _parse_json_value(config, _skip_json_blanks(text, at + 1), (*where, key))
        at = _skip_json_comma(text, at, "}")
    return found, at + 1


def _parse_json_list(config: ParsedConfig, at: int, where: ConfigPlace) -> tuple[list[Any], int]:
    text = config.text
    found: list[Any] = []
    at = _skip_json_blanks(text, at)
    while text[at : at + 1] != "]":
        value, at = _parse_json_value(config, at, (*where, len(found)))
        found.append(value)
        at = _skip_json_comma(text, at, "]")
    return found, at + 1


def _skip_json_comma(text: str, at: int, end: str) -> int:
    """Behind the comma, or at the end."""
    at = _skip_json_blanks(text, at)
    if text[at : at + 1] == ",":
        at = _skip_json_blanks(text, at + 1)
        if text[at : at + 1] == end:
            raise _json_error(text, at, f"a comma before {end}")
    elif text[at : at + 1] != end:
        raise _json_error(text, at, f"a comma or {end} is missing")
    return at


def _parse_json_string(text: str, at: int) -> tuple[str, int]:
    found = _JSON_CONFIG_STRING.match(text, at)
    try:
        if found:
            return str(json.loads(found[0])), found.end()
    except json.JSONDecodeError as error:
        raise _json_error(text, at + error.pos, error.msg) from None
    raise _json_error(text, at, "a text in double quotes does not end on its line")


def _skip_json_blanks(text: str, at: int) -> int:
    found = _JSON_BLANK.match(text, at)
    return found.end() if found else at


def _json_error(text: str, at: int, why: str) -> UnreadableConfig:
    line = text.count("\n", 0, at) + 1
    return UnreadableConfig(f"it is no JSON: line {line}, column {at - text.rfind(chr(10), 0, at)}: {why}")


_TOML_TOO_DEEP = "it is no TOML: it is nested too deeply"


def parse_toml_config(text: str) -> ParsedConfig:
    import tomllib

    try:
        tree = tomllib.loads(text)
    except RecursionError:
        raise UnreadableConfig(_TOML_TOO_DEEP) from None
    except ValueError as error:
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number has too many digits"
        raise UnreadableConfig(f"it is no TOML: {why}") from None
    if is_nested_too_deep(tree):  # dotted keys nest without a bracket
        raise UnreadableConfig(_TOML_TOO_DEEP)
    return ParsedConfig(text, "toml", tree)


def format_toml_config(config: ParsedConfig, changed: Sequence[ConfigPlace]) -> str:
    """With the values of the tree at these places. Raises UnreadableConfig where tomlkit refuses what tomllib reads."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document: Any = tomlkit.parse(config.text)
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise UnreadableConfig(f"it can't be edited as TOML: {error}") from None
    for where in changed:
        holder = document
        for step in where[:-1]:
            holder = holder[step]
        holder[where[-1]] = value_at_place(config.tree, where)
    return tomlkit.dumps(document)


YAML_TAG = "tag:yaml.org,2002:"
MERGE, TIME, TEXT = f"{YAML_TAG}merge", f"{YAML_TAG}timestamp", f"{YAML_TAG}str"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[+-][0-9:]+)?)?")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_OLD_BOOL = re.compile(
    r"(?:&\S+\s+)?(yes|Yes|YES|on|On|ON|no|No|NO|off|Off|OFF)"
)  # as PyYAML has them: y and n are texts


def parse_yaml_config(text: str) -> ParsedConfig:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    reader: Any = YAML(typ="safe", pure=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about anchors that are used again and numbers of YAML 1.1
            node = reader.compose(text)
            config = ParsedConfig(text, "yaml")
            if node is not None:
                config.tree = _YamlTreeReader(config, reader.constructor).value(node, ())
    except UnreadableConfig:
        raise
    except (YAMLError, ValueError, RecursionError, AssertionError) as error:
        raise UnreadableConfig(_describe_yaml_error(error)) from None
    return config


def _describe_yaml_error(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if problem == "but found another document":
        problem = "a second document begins here (---), and an edit would not know which is meant; keep one in a file"
    if isinstance(error, RecursionError):
        problem = "it is nested too deeply"
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"it is no YAML: {place}{problem or error}"


class _YamlTreeReader:
    """Makes values of nodes, and remembers their places. Keys are what is written: `1: x` has the key "1"."""

    def __init__(self, config: ParsedConfig, constructor: Any) -> None:
        self.config = config
        self.constructor = constructor
        self.seen: dict[int, ConfigPlace] = {}  # nodes with an anchor come by several times
        self.open: set[int] = set()
        self.count = 0

    def value(self, node: Any, where: ConfigPlace, *, own: bool = True) -> Any:
        """`own`: it stands here, and does not come from a merge or an alias."""
        self.count += 1
        if self.count > MOST_VALUES:
            raise UnreadableConfig(f"it is too large: more than {MOST_VALUES} values, its aliases written out")
        if len(where) > DEEPEST_CONFIG:
            raise _yaml_node_error(node, "it is nested too deeply")
        if id(node) in self.open:
            raise _yaml_node_error(node, f"&{node.anchor} contains itself")
        if own and id(node) in self.seen:
            self.config.shared[where] = f"is an alias (*{node.anchor})"
            self.config.shared[self.seen[id(node)]] = f"has the anchor &{node.anchor}, which is used elsewhere"
            own = False
        if own:
            self.seen[id(node)] = where
            self.config.spans[where] = (node.start_mark.index, self._end(node))
        self.open.add(id(node))
        value = self._made(node, where, own)
        self.open.discard(id(node))
        return value

    def _made(self, node: Any, where: ConfigPlace, own: bool) -> Any:
        if node.id == "mapping":
            return self._mapping(node, where, own)
        if node.id == "sequence":
            return [self.value(each, (*where, at), own=own) for at, each in enumerate(node.value)]
        if node.tag == TIME:
            return node.value
        if not node.tag.startswith(YAML_TAG):
            raise _yaml_node_error(node, f"the tag {node.tag} is known only to the program that it is for")
        if node.tag == TEXT and (old := _OLD_BOOL.fullmatch(self._source(node))):
            return self._old_bool(old[1], where)
        try:
            return self.constructor.construct_object(node)
        except (ValueError, ArithmeticError):
            raise _yaml_node_error(node, f"{node.value[:20]!r} is no {node.tag.removeprefix(YAML_TAG)}") from None

    def _old_bool(self, word: str, where: ConfigPlace) -> bool:
        """A text in YAML 1.2, but most trainers read with PyYAML: what looks like a switch is one for them."""
        value = word.lower() in ("yes", "on")
        self.config.notes[where] = f"{word} is read as {str(value).lower()} by YAML 1.1 readers such as PyYAML"
        return value

    def _source(self, node: Any) -> str:
        """As it is written, with quotes, tag and anchor."""
        return self.config.text[node.start_mark.index : node.end_mark.index]

    def _mapping(self, node: Any, where: ConfigPlace, own: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.id != "scalar":
                raise _yaml_node_error(key, "a key that is a list or a mapping; no path leads there")
            if key.tag == MERGE:
                for name, each in self._merged(value, where).items():
                    merged.setdefault(name, each)
                continue
            if key.value in found:
                raise _yaml_node_error(key, f"the key {key.value!r} is there twice")
            found[key.value] = self.value(value, (*where, key.value), own=own)
            self._place_of_nothing(key, (*where, key.value))
        for name in merged.keys() - found.keys():
            self.config.shared.setdefault((*where, name), "comes from a merge (<<)")
        return {**{name: each for name, each in merged.items() if name not in found}, **found}

    def _merged(self, node: Any, where: ConfigPlace) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in node.value if node.id == "sequence" else [node]:
            if each.id != "mapping":
                raise _yaml_node_error(each, "only mappings can be merged (<<)")
            if id(each) in self.seen:
                self.config.shared[self.seen[id(each)]] = f"has the anchor &{each.anchor}, which is used elsewhere"
            for name, value in self.value(each, where, own=False).items():
                found.setdefault(name, value)
        return found

    def _place_of_nothing(self, key: Any, where: ConfigPlace) -> None:
        """`key:` with nothing behind it has its place behind the colon, not where the next key begins."""
        start, end = self.config.spans.get(where, (0, 1))
        colon = re.compile(r"[ \t\r\n]*:").match(self.config.text, key.end_mark.index)
        if start == end and colon:
            self.config.spans[where] = (colon.end(), colon.end())

    def _end(self, node: Any) -> int:
        """Behind its last character: what a block ends with may be a comment about what comes next."""
        if node.id != "scalar" and not node.flow_style and node.value:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        start, end = int(node.start_mark.index), int(node.end_mark.index)
        return start + len(self.config.text[start:end].rstrip(" \t\r\n"))


def _yaml_node_error(node: Any, why: str) -> UnreadableConfig:
    mark = node.start_mark
    return UnreadableConfig(f"it is no YAML: line {mark.line + 1}, column {mark.column + 1}: {why}")


def format_yaml_value(config: ParsedConfig, where: ConfigPlace, value: Any) -> str:
    """A value as it stands at that place."""
    start, end = config.spans[where]
    before = config.text[start:end]
    if isinstance(value, str):
        text = _format_yaml_string(value, before)
    elif isinstance(value, float):
        text = _format_yaml_float(value)
    else:
        text = _format_yaml_flow(value)
    if not before:  # `key:` and nothing behind it
        return f" {text}"
    own_line = not config.text[config.text.rfind("\n", 0, start) + 1 : start].strip()
    return f"  {text}" if own_line and before.startswith("-") and isinstance(value, list | dict) else text


def _format_yaml_flow(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_quote_yaml_scalar(str(key))}: {_format_yaml_flow(each)}" for key, each in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_yaml_flow, value)) + "]"
    return _format_yaml_float(value) if isinstance(value, float) else _quote_yaml_scalar(value)


def _quote_yaml_scalar(value: Any) -> str:
    """As JSON, but for characters that YAML wants escaped in its own way."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else "".join(map(_escape_yaml_character, text))


def _escape_yaml_character(character: str) -> str:
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _format_yaml_float(value: float) -> str:
    """With a point and a signed exponent: older readers of YAML take 1e-05 for a text."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    return re.sub(r"^(-?[0-9]+)e", r"\1.0e", text) if "e" in text else text


def _format_yaml_string(value: str, before: str) -> str:
    """Plain where the old one was plain and nobody would take it for something else."""
    if before[:1] == "'" and value.isprintable():
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    plain = re.fullmatch(r"[A-Za-z_/][A-Za-z0-9_./-]*", value) and value.lower() not in _YAML_WORDS
    if before[:1] != '"' and (plain or (_DATE.fullmatch(before) and _DATE.fullmatch(value))):
        return value
    return _quote_yaml_scalar(value)
