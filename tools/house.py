"""Figures of a Python source tree: size, names, cycles. docs/figures.md has those of this one.

    python tools/house.py SRC [--json]

Lines and files; module-level functions with one-word names (no underscore inside, leading ones stripped) and those that
share their name with another; functions and files that are long; import cycles between modules (imports inside
functions count too).
"""

from __future__ import annotations

import ast
import collections
import json
import sys
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_modules(src: Path) -> Iterator[tuple[str, Path, ast.Module]]:
    for path in sorted(src.rglob("*.py")):
        name = ".".join(path.relative_to(src).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path, ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(tree: ast.Module, name: str, is_package: bool, known: Set[str]) -> Iterator[str]:
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, node.module] if node.module else up)
            targets = [f"{base}.{alias.name}" for alias in node.names] + [base]
        else:
            continue
        for target in targets:
            if target in known and target != name:
                yield target
                if isinstance(node, ast.ImportFrom) and target.count(".") > (node.module or "").count("."):
                    break


def find_cycles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Strongly connected components with more than one module, by Tarjan's algorithm without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on: set[str] = set()
    stack: list[str] = []
    found = []

    def enter(node: str) -> tuple[str, Iterator[str]]:
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        return node, iter(graph[node])

    for root in graph:
        work = [] if root in index else [enter(root)]
        while work:
            node, edges = work[-1]
            for target in edges:
                if target not in index:
                    work.append(enter(target))
                    break
                if target in on:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    begin = stack.index(node)
                    part = stack[begin:]
                    del stack[begin:]
                    on.difference_update(part)
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def figures_of_tree(src: Path) -> dict[str, Any]:
    modules = list(read_modules(src))
    known = {name for name, _, _ in modules}
    sizes = {str(path.relative_to(src)): path.read_text(encoding="utf-8").count("\n") for _, path, _ in modules}
    functions = [node.name for _, _, tree in modules for node in tree.body if isinstance(node, FUNCTIONS)]
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for _, _, tree in modules
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    )
    graph = {name: set(imported_modules(tree, name, path.stem == "__init__", known)) for name, path, tree in modules}
    count = collections.Counter(name.lstrip("_") for name in functions)
    one_word = sum("_" not in name.strip("_") for name in functions)
    shared = sum(count[name.lstrip("_")] > 1 for name in functions)
    return {
        "files": len(modules),
        "lines": sum(sizes.values()),
        "module_functions": len(functions),
        "one_word_names_pct": round(100 * one_word / max(1, len(functions)), 1),
        "shared_names_pct": round(100 * shared / max(1, len(functions)), 1),
        "most_shared": count.most_common(12),
        "median_function_lines": lengths[len(lengths) // 2] if lengths else 0,
        "functions_over_50_lines": sum(length > 50 for length in lengths),
        "files_over_400_lines": sorted(((size, name) for name, size in sizes.items() if size > 400), reverse=True),
        "cycles": find_cycles(graph),
    }


def main() -> None:
    figures = figures_of_tree(Path(sys.argv[1]))
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    for key, value in figures.items():
        print(f"{key:24s} {value}")


if __name__ == "__main__":
    main()
