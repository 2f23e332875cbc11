"""muster check"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from muster.app.campaign.preflight.check_campaign import check_campaign
from muster.app.campaign.preflight.check_report import CheckResult, check_as_json
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import paint_text, print_asked_environment, print_json, print_mistakes
from muster.files.campaign_ownership import find_readable_root
from muster.model.attempt import classify_code_state, list_code_changes
from muster.model.errors import UsageError
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

app = typer.Typer(add_completion=False)


@app.command("check", epilog="Example:  muster check --json | jq .mistakes")
def check_command(
    ctx: typer.Context,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Execute the jobs' Pythons to ask which packages they have and devices they see."),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Ask none of them, not even in a campaign that you have run.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows every mistake in campaign.yaml with line and column, then what this machine offers. Starts nothing.

    Nothing of the campaign is executed but with --ask. Once you have run it, Pythons outside of its folder are asked.

    Exit code: 0 valid (warnings or not), 1 valid, but this machine lacks something that it needs, 2 there are mistakes.
    """
    if ask and quick:
        raise UsageError(phrase("cli.ask_asks_what_quick_leaves_out"), where="--quick", hint=phrase("cli.say_one_two"))
    found = check_campaign(
        find_readable_root(folder_of_context(ctx)), quick=quick, ask=ask, asking=print_asked_environment
    )
    if as_json_:
        print_json(check_as_json(found))
    else:
        print_check(found)
    return found.exit


def print_check(found: CheckResult) -> None:
    print_mistakes(found.file, [*found.mistakes, *found.failures, *found.warnings, *found.notes])
    if not found.valid:
        return
    warned = f", {phrase('count.warning', n=len(found.warnings))}" if found.warnings else ""
    print(paint_text(phrase("cli.valid", file=found.file, warned=warned), "green"))
    for line in format_machine_lines(found.preflight) if found.preflight else ():
        print(line)
    if found.saved:
        print(phrase("cli.saved", saved=found.saved))
    if found.failures:
        print(paint_text(phrase("cli.preflight_failed_what_missing_here"), "red"))


def format_machine_lines(record: Mapping[str, Any]) -> Iterator[str]:
    gpus = [
        f"{gpu['index']} {gpu['name']}" + (f" (busy: {gpu['why']})" if gpu["busy"] else "") for gpu in record["gpus"]
    ]
    yield f"  GPUs    {', '.join(gpus) or 'none found'}"
    if record["driver"]:
        yield f"  driver  {record['driver']}" + (f", CUDA {record['cuda']}" if record.get("cuda") else "")
    if record["disk"]:
        yield phrase("cli.disk_gib_free", free_bytes=record["disk"]["free_bytes"] / 2**30, path=record["disk"]["path"])
    yield phrase(
        "cli.python_musters_own_cpus", python=record["python"], platform=record["platform"], cpus=record["cpus"]
    )
    for each in record.get("environments", ()):
        yield f"  runs    {', '.join(each['jobs'])}: {_format_environment(each)}"
    for folder, code in record["code"].items():
        yield f"  code    {folder}: {_format_code(code)}"


def _format_environment(each: Mapping[str, Any]) -> str:
    if each["command"] is None:
        return str(each["note"])
    name = " ".join(each["command"])
    if "note" in each:
        return f"{name}, {each['note']}"
    if each["python"] is None:
        return phrase("cli.cant_started", name=name)
    frameworks = [_format_framework(one) for one in each["frameworks"]] or [
        phrase("cli.neither_jax_nor_torch_installed")
    ]
    packages = phrase("count.package", n=len(each["packages"]))
    return phrase(
        "cli.python", name=name, version=each["python"]["version"], frameworks="; ".join(frameworks), packages=packages
    )


def _format_framework(one: Mapping[str, Any]) -> str:
    name = " ".join(part for part in (one["name"], one.get("version")) if part)
    if one.get("trouble"):
        return f"{name} fails: {one['trouble']}"
    return f"{name} sees {join_few_names(one['devices'], 4) or 'no GPU'}" + (
        f" ({join_few_names(one['kinds'], 2)})" if one["kinds"] else ""
    )


def _format_code(code: Mapping[str, Any]) -> str:
    state, files = classify_code_state(code), len(code.get("files") or ())
    hashed = phrase(
        "cli.source_known", count=phrase("count.file", n=files), value="its hash" if files == 1 else "their hashes"
    )
    if state == "unknown":
        return phrase("cli.not_known", get=code.get("why") or "git could not tell what was changed")
    if state == "no_commit":
        return phrase("cli.repository_without_commit_yet", hashed=hashed if files else "no source in it")
    if state != "known":
        known = hashed if files else phrase("cli.which_code_ran_cant_told_later")
        return phrase("cli.not_git_repository", known=known)
    return f"commit {code['commit'][:12]}, {_format_code_changes(code) if code['dirty'] else 'clean'}"


def _format_code_changes(code: Mapping[str, Any]) -> str:
    changed, untracked = list_code_changes(code)
    named = [*changed, *(f"{name} untracked" for name in untracked)]
    where = f" in {phrase('count.file', n=len(named))}: {join_few_names(named, 4)}" if named else ""
    return phrase("cli.changes_not_committed_diff", where=where, dirty=code["dirty"])
