"""docs/interface.md is the contract: every command and option is in it, and nothing that does not exist."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest
import typer
from documents import ROOT, sections

from muster.app.campaign.campaign_status import CELL_STATES
from muster.faces.cli.common.command_line import COMMANDS, app
from muster.model.errors import MusterError, UsageError
from muster.model.verdict import VerdictState

INTERFACE = ROOT / "docs" / "interface.md"
COMMON = {"--help", "-h", "--install-completion", "--show-completion"}  # of every command: described once


def described() -> dict[str, str]:
    """Command -> its section, the heading with it."""
    found = {}
    for head, text in sections(INTERFACE).items():
        match = re.match(r"`muster (\w+)", head)
        if match:
            found[match.group(1)] = f"{head}\n{text}"
    return found


def command(name: str) -> Any:
    return typer.main.get_command(importlib.import_module(f"muster.faces.cli.{name}").app)


def options(of: Any) -> set[str]:
    shown = (parameter for parameter in of.params if parameter.param_type_name == "option" and not parameter.hidden)
    found = {option for parameter in shown for option in (*parameter.opts, *parameter.secondary_opts)}
    return found.union(*(options(verb) for verb in getattr(of, "commands", {}).values()))


def words(text: str) -> set[str]:
    """Options in a text: `--because TEXT`, `-f`."""
    return set(re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", text))


def test_every_command_has_its_section() -> None:
    assert list(described()) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_described(name: str) -> None:
    section = described().get(name, "")
    known = options(command(name)) - COMMON
    bullets = "\n".join(line.partition(":")[0] for line in section.splitlines() if line.startswith("- "))
    assert known == words(bullets)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_is_in_the_heading(name: str) -> None:
    head = described().get(name, "").partition("\n")[0].strip("`# ")
    arguments = [parameter.metavar for parameter in command(name).params if parameter.param_type_name == "argument"]
    assert head.split()[2:] == arguments


def test_common_options_are_described() -> None:
    text = sections(INTERFACE, level=2)["Conventions"]
    assert options(typer.main.get_command(app)) | {"--help", "-h"} <= words(text)


def test_what_is_planned_does_not_exist_yet() -> None:
    planned = set(re.findall(r"`muster (\w+)", sections(INTERFACE, level=2)["Not yet"]))
    assert planned
    assert not planned & set(COMMANDS), "it exists: move it to the commands"


def test_every_exit_code_is_described() -> None:
    codes = set(map(int, re.findall(r"^\| (\d+) \|", sections(INTERFACE, level=2)["Exit codes"], re.MULTILINE)))
    assert codes >= {0, MusterError.exit, UsageError.exit, 3, 4}


def test_every_schema_is_linked() -> None:
    text = INTERFACE.read_text()
    assert [
        path.name for path in (ROOT / "docs" / "schemas").glob("*.json") if f"(schemas/{path.name})" not in text
    ] == []


def test_where_a_campaign_without_gpus_runs_is_said() -> None:
    found = re.findall(r"^\| `(\w+)` \|(.*)$", (ROOT / "docs" / "campaign.md").read_text(), re.MULTILINE)
    rows = dict(reversed(found))  # of keys with the same name the first
    assert "without a GPU cells run on CPU slots" in rows["gpus"]


def test_every_verdict_is_in_the_glossary() -> None:
    text = sections(ROOT / "docs" / "glossary.md", level=2)["Verdicts"]
    assert (
        {str(state) for state in VerdictState}
        == set(CELL_STATES)
        == set(re.findall(r"^\| ([A-Z_]+) \|", text, re.MULTILINE))
    )
