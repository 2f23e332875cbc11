"""A command with verbs of its own, such as `muster docs bind`: a mistyped one gets a hint."""

from __future__ import annotations

import difflib
from typing import Any

from typer.core import TyperGroup

from muster.domain.errors import UsageError


class Verbs(TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            near = difflib.get_close_matches(args[0], self.commands, 1)
            hint = f"did you mean `muster {self.name} {near[0]}`?" if near else f"one of: {', '.join(self.commands)}"
            raise UsageError(f"there is no command '{self.name} {args[0]}'", hint=hint)
        return super().resolve_command(ctx, args)
