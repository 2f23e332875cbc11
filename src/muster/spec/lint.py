"""What the lint modules share: the model, where its parts stand, and the list of mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.domain.errors import Mistake
from muster.spec.document import Document, Items, Path, Scalar, Table, dotted
from muster.spec.fields import closest
from muster.spec.model import CampaignFile, ValueSettings


@dataclass
class Lint:
    model: CampaignFile
    document: Document  # what the model was made from
    whole: Document  # as written: names in it exist, even where what they stand for is wrong
    mistakes: list[Mistake]
    _wrong: set[str] = field(default_factory=set)  # paths of the errors so far, with all that they are below
    _indexed: int = 0  # of `mistakes`

    def add(
        self, path: Path, what: str, hint: str = "", *, key: bool = False, part: str = "", level: str = "error"
    ) -> None:
        place = self.document.place_of(path, part) if part else self.document.place(path, key=key)
        self.mistakes.append(Mistake(what, *place, hint, dotted(self.document.written(path)), level))

    def warn(self, path: Path, what: str, hint: str = "", *, key: bool = False, part: str = "") -> None:
        self.add(path, what, hint, key=key, part=part, level="warning")

    def unknown(self, path: Path, what: str, name: str, known: list[str], *, key: bool = False) -> None:
        """A name that stands for nothing."""
        hint = closest(name, known) or (f"known: {', '.join(known[:12])}" if known else "there is none")
        self.add(path, what, hint, key=key)

    def wrong_below(self, path: Path) -> bool:
        """Whether something at or under a path is wrong already: what follows from it is not worth telling."""
        for mistake in self.mistakes[self._indexed :]:
            if mistake.level == "error":
                parts = mistake.path.split(".")
                self._wrong.update(".".join(parts[:length]) for length in range(1, len(parts) + 1))
        self._indexed = len(self.mistakes)
        return dotted(self.document.written(path)) in self._wrong

    def misspelt(self, path: Path, key: str) -> bool:
        """Whether a missing key is there under a name that is nearly right, which was told already."""
        hint = closest(key, [key])
        return any(item.path.startswith(dotted(path) + ".") and item.hint == hint for item in self.mistakes)

    @property
    def axes(self) -> list[str]:
        names = [key.text for key in self.whole.keys(("axes",))]
        return [*names, "variant"] if self.model.loop else names

    @property
    def jobs(self) -> list[str]:
        return [key.text for key in self.whole.keys(("jobs",))]

    def axes_of(self, job: str) -> list[str]:
        """The job's axes, the growing one of a loop included."""
        axes, loop = list(self.model.jobs[job].axes or []), self.model.loop
        if loop is None or loop.job != job:
            return axes
        repeated = loop.repeats > 1 and "seed" not in axes
        return [*axes, "variant", *(["seed"] if repeated else [])]

    def values(self, axis: str) -> list[str]:
        return [scalar.text for scalar, _ in axis_scalars(self.whole, axis)]

    def results(self) -> dict[str, list[str]]:
        """Result names with the jobs that have them."""
        found: dict[str, list[str]] = {}
        for job in self.jobs:
            for key in self.whole.keys(("jobs", job, "results")):
                found.setdefault(key.text, []).append(job)
        return found


@dataclass(frozen=True, slots=True)
class WrittenValue:
    scalar: Scalar
    path: Path
    settings: ValueSettings = field(default_factory=ValueSettings)


def axis_scalars(document: Document, axis: str) -> Iterator[tuple[Scalar, Path]]:
    """The values of an axis as they stand in the file, whichever of its two forms it has."""
    node = document.get(("axes", axis))
    if isinstance(node, Items):
        for index, item in enumerate(node.items):
            if isinstance(item, Scalar) and item.value is not None:
                yield item, ("axes", axis, index)
    elif isinstance(node, Table):
        for key, _ in node.entries:
            yield key, ("axes", axis, key.text)


def written_values(model: CampaignFile, document: Document, axis: str) -> list[WrittenValue]:
    settings = model.axes[axis]
    return [
        WrittenValue(scalar, path, settings[scalar.text]) if isinstance(settings, dict) else WrittenValue(scalar, path)
        for scalar, path in axis_scalars(document, axis)
    ]
