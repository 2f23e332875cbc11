"""Finds, loads and calls the user's function behind `loop: {propose: ...}`. An error in it is reported with its file
and line.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib
import importlib.util
import io
import random
import re
import sys
import tokenize
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from muster.files.safe_open import read_regular_file
from muster.model.errors import MusterError
from muster.text.phrases import join_phrases, phrase

PYTHON_SUFFIX = ".py"
MOST_DOTS = 200  # between names in one word
LARGEST_SOURCE = 512 << 10  # bytes: what Python makes of a source takes a hundred times its size and more


@dataclass(frozen=True, slots=True)
class ProposerFunction:
    """`my_rules.py:propose` in the campaign's folder, or `package.module:propose`."""

    text: str
    root: Path

    @property
    def place(self) -> str:
        return self.text.rpartition(":")[0]

    @property
    def name(self) -> str:
        return self.text.rpartition(":")[2]

    @property
    def file(self) -> Path | None:
        return self.root / self.place if self.place.endswith(PYTHON_SUFFIX) else None

    # -- before anything is spent: nothing of the user's is run

    def mistake(self) -> tuple[str, str]:
        """What is wrong with it and how to fix it, as far as it can be seen from outside."""
        found = None
        if self.file is None:
            with _campaign_importable(self.root), contextlib.suppress(ValueError):
                found = importlib.util.find_spec(self.place.partition(".")[0])
            hint = phrase("campaign.install_or_name_file")
            return ("", "") if found else (phrase("campaign.no_such_module_place", place=self.place), hint)
        try:
            source = read_regular_file(self.file, LARGEST_SOURCE)
        except OSError as error:
            return phrase("campaign.place_unreadable", place=self.place, reason=error.strerror), phrase(
                "campaign.files_looked_for_in_folder"
            )
        try:
            names = _bound_names(parse_python_source(source, self.place))
        except (MemoryError, RecursionError):
            return phrase("campaign.source_nested_too_deep", place=self.place), phrase("campaign.fix_there")
        except (SyntaxError, ValueError) as error:
            place, said = self.place, str(error)
            if isinstance(error, SyntaxError):
                said = error.msg
                place = phrase("campaign.source_line", place=place, line=error.lineno) if error.lineno else place
            return join_phrases(": ", (place, said)), phrase("campaign.fix_there")
        if names is None or self.name in names:
            return "", ""
        near = difflib.get_close_matches(self.name, names, 1)
        hint = (
            phrase("campaign.near_function", place=self.place, near=near[0])
            if near
            else phrase("campaign.write_function_there", name=self.name)
        )
        return phrase("campaign.has_no_function", place=self.place, name=self.name), hint

    # -- calls

    def load(self) -> Callable[[Any], Any]:
        what, hint = self.mistake()
        if what:
            raise MusterError(phrase("campaign.propose_cannot_load", what=what), where=self.text, hint=hint)
        with self._told(), _campaign_importable(self.root):
            module = self._module()
        found = getattr(module, self.name, None)
        if not callable(found):
            said = phrase("campaign.is_no_function") if found is not None else phrase("campaign.is_not_there")
            raise MusterError(phrase("campaign.propose_name_unusable", name=self.name, said=said), where=self.place)
        return found  # type: ignore[no-any-return]

    def call(self, function: Callable[[Any], Any], given: Any, seed: int) -> Any:
        """What it returns. It draws the same whenever it is called with the same, if it draws with `random`."""
        before = random.getstate()
        random.seed(seed)
        try:
            with self._told(), _campaign_importable(self.root):
                return function(given)
        finally:
            random.setstate(before)

    def _module(self) -> ModuleType:
        if self.file is None:
            return importlib.import_module(self.place)
        module = ModuleType(f"muster_loop_{self.file.stem}")
        module.__file__ = str(self.file)
        sys.modules[module.__name__] = module  # dataclasses look for it there
        exec(compile(self.file.read_bytes(), str(self.file), "exec"), module.__dict__)
        return module

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (Exception, SystemExit) as error:
            raise MusterError(
                self._raised(error),
                where=self._line(error),
                hint=phrase("campaign.fix_then_up_asks"),
            ) from None

    @staticmethod
    def _raised(error: BaseException) -> str:
        kind = type(error).__name__
        if said := str(error).rstrip(": "):
            return phrase("campaign.propose_raised", kind=kind, error=said)
        return phrase("campaign.propose_raised_silently", kind=kind)

    def _line(self, error: BaseException) -> str:
        """The innermost line of the user's own."""
        frames = traceback.extract_tb(error.__traceback__)
        if isinstance(error, SyntaxError) and error.filename:
            return phrase("campaign.source_line", place=_path_within_root(error.filename, self.root), line=error.lineno)
        own = [frame for frame in frames if self._own(frame.filename)]
        return (
            phrase("campaign.source_line", place=_path_within_root(own[-1].filename, self.root), line=own[-1].lineno)
            if own
            else self.text
        )

    def _own(self, name: str) -> bool:
        if self.file is not None and Path(name) == self.file:
            return True
        module = sys.modules.get(self.place)
        return Path(name).is_relative_to(self.root) or (module is not None and getattr(module, "__file__", "") == name)


@contextlib.contextmanager
def _campaign_importable(root: Path) -> Iterator[None]:
    """The campaign's folder is importable, nothing is written into it, and what is printed goes to stderr."""
    path, written = list(sys.path), sys.dont_write_bytecode
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, written


def parse_python_source(source: bytes, name: str) -> ast.Module:
    """Raises as `ast.parse` does, and for a chain of thousands of names: memory for it grows with its square."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    text = source.decode(encoding)
    for chain in re.split(r"[^\w.]+", re.sub(r"[ \t\f]+|\\\r?\n", "", text)):
        if chain.count(".") > MOST_DOTS:
            raise RecursionError(phrase("campaign.chain_of_names"))
    return ast.parse(text, name)


def _bound_names(tree: ast.Module) -> list[str] | None:
    """Names that the module may have; None where `import *` hides some."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if any(each.name == "*" for each in node.names):
                return None
            names += [each.asname or each.name.partition(".")[0] for each in node.names]
    return names


def _path_within_root(name: str, root: Path) -> str:
    path = Path(name)
    return str(path.relative_to(root)) if path.is_relative_to(root) else name
