"""The `muster` command itself: a command's file is imported only when it is called, and a mistyped name gets a hint,
also in groups such as `muster docs`.
"""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from muster.faces.cli.common.terminal_output import plain_streams, without_cleaning
from muster.model.errors import UsageError
from muster.text.phrases import phrase

# in the order a newcomer meets them
COMMANDS = (
    "demo",
    "init",
    "schema",
    "check",
    "plan",
    "up",
    "status",
    "ls",
    "why",
    "look",
    "metrics",
    "wait",
    "logs",
    "stop",
    "down",
    "hold",
    "release",
    "retry",
    "redo",
    "giveup",
    "accept",
    "flag",
    "note",
    "rename",
    "adopt",
    "report",
    "trace",
    "verify",
    "record",
    "manifest",
    "pack",
    "unpack",
    "cost",
    "docs",
    "edit",
    "loop",
    "gates",
    "journal",
    "shutdown",
    "clean",
    "fsck",
)


class LazyCommands(TyperGroup):
    """Imports `muster.faces.cli.<command>` when it is asked for: `muster status` must not pay for `muster up`."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(importlib.import_module(f"muster.faces.cli.{cmd_name}").app)
        command.name = cmd_name
        return _keep_help_colours(command)

    def get_help(self, ctx: Any) -> str:
        with plain_streams():
            return super().get_help(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            code, command = ("cli.did_you_mean_command", f"muster {near[0]}") if near else ("cli.see_help", "muster")
            raise UsageError(phrase("cli.no_such_command", command=repr(args[0])), hint=phrase(code, command=command))
        return super().resolve_command(ctx, args)


def _keep_help_colours(command: Any) -> Any:
    """Typer draws its help itself, with codes of its own; nothing in it comes from a run."""
    command.get_help = without_cleaning(command.get_help)
    for each in getattr(command, "commands", {}).values():
        _keep_help_colours(each)
    return command


app = typer.Typer(
    cls=LazyCommands,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  muster -C my_campaign up --detach   then   muster -C my_campaign status",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from muster import __version__

        print(f"muster {__version__}")
        raise typer.Exit


@app.callback()
def root_options(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Option("-C", metavar="DIR", help="Work as if started in DIR, as in git.", show_default=False)
    ] = Path(),
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Runs campaigns of machine-learning experiments to the end and tells the truth about them."""
    ctx.obj = folder


def run_arguments(arguments: list[str]) -> int:
    if not arguments:
        app(["--help"], standalone_mode=False)
        return 2
    try:
        result: Any = app(arguments, standalone_mode=False)
    except typer.Abort:
        return 130
    except typer.Exit as leaving:
        return leaving.exit_code
    return result if isinstance(result, int) else 0


def folder_of_context(ctx: typer.Context) -> Path:
    found: Any = ctx.find_root().obj
    return found if isinstance(found, Path) else Path()


class VerbGroup(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            near = difflib.get_close_matches(args[0], self.commands, 1)
            hint = (
                phrase("cli.did_you_mean_command", command=f"muster {self.name} {near[0]}")
                if near
                else phrase("cli.one_of", commands=", ".join(self.commands))
            )
            raise UsageError(phrase("cli.no_such_command", command=f"'{self.name} {args[0]}'"), hint=hint)
        return super().resolve_command(ctx, args)
