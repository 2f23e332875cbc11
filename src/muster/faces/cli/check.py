"""muster check"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from muster.app.campaign.preflight.check_campaign import check_campaign
from muster.app.campaign.preflight.check_report import CheckResult, check_as_json
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import (
    pad_label,
    paint_text,
    print_asked_environment,
    print_json,
    print_mistakes,
)
from muster.files.campaign_ownership import find_readable_root
from muster.model.attempt import classify_code_state, list_code_changes
from muster.model.errors import UsageError
from muster.text.phrases import join_phrases, phrase
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
        raise UsageError(phrase("cli.ask_and_quick_exclude"), where="--quick", hint=phrase("cli.say_one_of_the_two"))
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
    valid = [phrase("cli.file_valid", file=found.file)]
    valid += [phrase("count.warning", n=len(found.warnings))] if found.warnings else []
    print(paint_text(join_phrases(", ", valid), "green"))
    for line in format_machine_lines(found.preflight) if found.preflight else ():
        print(line)
    if found.saved:
        print(phrase("cli.saved_in", path=found.saved))
    if found.failures:
        print(paint_text(phrase("cli.preflight_failed"), "red"))


def format_machine_lines(record: Mapping[str, Any]) -> Iterator[str]:
    gpus = [
        phrase("cli.gpu_busy", gpu=f"{gpu['index']} {gpu['name']}", reason=gpu["why"])
        if gpu["busy"]
        else f"{gpu['index']} {gpu['name']}"
        for gpu in record["gpus"]
    ]
    yield _machine_line("cli.label_gpus", join_phrases(", ", gpus) if gpus else phrase("cli.no_gpu_found"))
    if record["driver"]:
        cuda = f", CUDA {record['cuda']}" if record.get("cuda") else ""
        yield _machine_line("cli.label_driver", record["driver"] + cuda)
    if record["disk"]:
        free, path = record["disk"]["free_bytes"] / 2**30, record["disk"]["path"]
        yield _machine_line("cli.label_disk", phrase("cli.disk_free", gib=free, path=path))
    yield _machine_line(
        "cli.label_python",
        phrase("cli.own_python", python=record["python"], platform=record["platform"], cpus=record["cpus"]),
    )
    for each in record.get("environments", ()):
        yield _machine_line("cli.label_runs", join_phrases(": ", (", ".join(each["jobs"]), _format_environment(each))))
    for folder, code in record["code"].items():
        yield _machine_line("cli.label_code", join_phrases(": ", (folder, _format_code(code))))


def _machine_line(label: str, said: str) -> str:
    return f"  {pad_label(phrase(label), 8)}{said}"


def _format_environment(each: Mapping[str, Any]) -> str:
    if each["command"] is None:
        return str(each["note"])
    name = " ".join(each["command"])
    if "note" in each:
        return join_phrases(", ", (name, each["note"]))
    if each["python"] is None:
        return phrase("cli.python_cant_start", python=name)
    frameworks = [_format_framework(one) for one in each["frameworks"]] or [phrase("cli.no_framework_installed")]
    packages = phrase("count.package", n=len(each["packages"]))
    return phrase(
        "cli.python_has",
        python=name,
        version=each["python"]["version"],
        frameworks=join_phrases("; ", frameworks),
        packages=packages,
    )


def _format_framework(one: Mapping[str, Any]) -> str:
    name = " ".join(part for part in (one["name"], one.get("version")) if part)
    if one.get("trouble"):
        return phrase("cli.framework_fails", framework=name, trouble=one["trouble"])
    devices = join_few_names(one["devices"], 4) if one["devices"] else phrase("cli.no_gpu")
    sees = phrase("cli.framework_sees", framework=name, devices=devices)
    return join_phrases("", (sees, " (", join_few_names(one["kinds"], 2), ")")) if one["kinds"] else sees


def _format_code(code: Mapping[str, Any]) -> str:
    state, files = classify_code_state(code), len(code.get("files") or ())
    hashed = phrase("cli.source_known_by_hash", n=files)
    if state == "unknown":
        return phrase("cli.code_not_known", reason=code.get("why") or phrase("cli.git_could_not_tell"))
    if state == "no_commit":
        return phrase("cli.repository_without_commit", known=hashed if files else phrase("cli.no_source_in_it"))
    if state != "known":
        return phrase("cli.no_git_repository", known=hashed if files else phrase("cli.code_cant_be_told_later"))
    changes = _format_code_changes(code) if code["dirty"] else phrase("cli.clean_commit")
    return phrase("cli.at_commit", commit=code["commit"][:12], changes=changes)


def _format_code_changes(code: Mapping[str, Any]) -> str:
    changed, untracked = list_code_changes(code)
    named = [*changed, *(phrase("cli.untracked_file", file=name) for name in untracked)]
    if not named:
        return phrase("cli.uncommitted_changes", diff=code["dirty"])
    files, names = phrase("count.file", n=len(named)), join_few_names(named, 4)
    return phrase("cli.uncommitted_changes_in", files=files, names=names, diff=code["dirty"])
