"""The forms of recorded reasons that are often met: why a run died, why nothing was proposed, what a search drew.

They are recorded in English, where they arise. The words of a language have a text for those that it tells in its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NO_NUMBER = "what it printed holds no number"
_NAME = r"(?P<name>\S+)"
FORMS = tuple(
    (name, re.compile(form, re.DOTALL))
    for name, form in (
        # judge/cause.py
        (
            "exit",
            r"(?:the command exited with|it ended with exit code) (?P<n>\d+)(?:, as its launcher reports)?(?:; .+)?",
        ),
        ("raised", r"it ended with (?P<kind>[\w.]+)"),
        ("raised_said", r"it ended with (?P<kind>[\w.]+): (?P<said>.+)"),
        ("signal", r"killed by signal (?P<n>\d+) \((?P<kind>\w+)\); who sent it is not known"),
        ("memory", r"killed by the kernel for lack of memory: .+"),
        ("gpu_memory", r"the GPU's memory did not suffice(?:;.+)?"),
        ("disk", r"no space was left where it wrote, or a quota was reached"),
        ("not_finite", r"a number that it computes with became NaN or infinite.*"),
        ("proof", r"exit 0, but its proof fails: (?P<said>.+)"),
        ("ended", r"(?P<cell>\S+) is (?P<kind>[A-Z_]+): (?P<why>.+)"),
        # wiring/looping.py, wiring/histories.py, rounds/evaluating.py
        ("never_ran", r"it never ran"),
        ("nothing", r"nothing that it logged is in [^:]+: (?P<files>[^;]+)"),
        ("nothing_printed", rf"nothing that it logged is in [^:]+: (?P<files>[^;]+); {_NO_NUMBER}"),
        ("no_value", r"no value in (?P<path>\S+)"),
        ("not_logged", r'nothing logged "(?P<metric>[^"]+)"(?:; .+)?'),
        # acts/next_round.py
        ("tried", r"every config that was proposed has been tried before"),
        ("no_run", r"there is no run to build on"),
        ("false", r"(?P<reason>.+): (?P<test>[^:]+): false"),
        ("in_vain", r"(?P<reason>.+): [^:]+: true, but (?P<said>.+)"),
        ("default", r"(?P<reason>.+): no rule (?:fired|that fired has anything to propose), but (?P<said>.+)"),
        ("unknown", r"(?P<reason>.+): [^:]+: unknown \((?P<why>.+)\)"),
        # acts/propose_search.py, acts/loop_report.py
        ("points", rf"all (?P<n>\d+) points of {_NAME} have been tried"),
        ("random", r"drawn at random"),
        ("startup", r"drawn at random, (?P<kind>\w+) begins with (?P<n>\d+) scores"),
        ("drawn", rf"(?P<kind>\w+) of (?P<n>\d+) scores, the best (?P<score>\S+) of {_NAME}"),
        ("search", r"points of the space, drawn by (?P<kind>\w+)"),
        ("various", r"each for a reason of its own"),
    )
)


def forms_of(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The names of those that it has, and what is in their places."""
    for name, form in FORMS:
        if found := form.fullmatch(text):
            yield name, found.groupdict()
