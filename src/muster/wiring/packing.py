"""Chooses what goes into a pack: all that report, verify and trace need elsewhere; no secret, no checkpoint unasked."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

import muster
from muster.acts.left_checkpoints import FILE as LEFT_OUT
from muster.acts.left_checkpoints import LeftOut
from muster.acts.manifest import Entry
from muster.acts.masking import hidden_lines
from muster.acts.pack import Source, Step, describe, refuse_target, write_pack
from muster.acts.pack_manifest import FORMAT, LogRevision, PackManifest, is_of_one_machine
from muster.acts.stamping import stamps
from muster.domain.cell import needed_cells
from muster.domain.errors import MusterError, UsageError
from muster.domain.origins import Checkpoint
from muster.domain.state import CampaignState
from muster.domain.whereabouts import OUTSIDE, OUTSIDE_LIST
from muster.domain.wording import counted
from muster.observe.hashes import HashCache
from muster.ports.folders import walk
from muster.ports.write_files import no_more_open_than
from muster.report.documents.sidecar import SUFFIX
from muster.store import campaigns
from muster.store.newer import refuse_newer_state
from muster.store.place import mark_unpacked
from muster.wiring.basis import Reader, done_cells, named_files, used_files
from muster.wiring.desk import FILE, Desk
from muster.wiring.listing import files_of
from muster.wiring.pack_secrets import without_secrets
from muster.wiring.started_here import HINT, begun_by_us, not_started_here
from muster.wiring.survey import look

EXTRAS = ("checkpoints", "secrets")
LOG = ".muster/decisions.jsonl"
WRITTEN = frozenset({"decisions.jsonl", LEFT_OUT, OUTSIDE_LIST})  # of .muster: each in its own way
# of outputs: what people and readers of metrics read. Arrays, videos, weights stay, unless a number is read from them
TEXTS = (".json", ".jsonl", ".csv", ".tsv", ".yaml", ".yml", ".toml", ".txt", ".log", ".md", ".wandb", ".ini")
EVENTS = "tfevents"  # in the names of TensorBoard's files
LARGEST_TEXT = 64 << 20  # bytes: larger ones only where a number is read from them
LINES = 3


@dataclass(frozen=True, slots=True)
class Packed:
    file: Path
    size: int
    manifest: PackManifest
    checkpoints: int  # that are in it


def pack(desk: Desk, target: Path, extras: frozenset[str], step: Step, *, force: bool = False) -> Packed:
    refuse_target(target, force=force)
    if "secrets" not in extras:
        _refuse_secrets(desk)
    state = desk.load()
    _refuse_open(desk, state)
    choice = Choice(desk, state, "checkpoints" in extras)
    sources = list(choice.sources())
    _refuse_foreign(desk, sources)
    if "secrets" not in extras:
        sources = list(without_secrets(sources, choice.hashed))
    files = describe(sources, step)
    last = desk.store.events()[-1].decision.at
    manifest = PackManifest(
        FORMAT, muster.__version__, state.campaign.name, LogRevision(choice.log_bytes, last), tuple(files),
        tuple(choice.folders()), tuple(sorted(choice.left_cells)), len(choice.outside),
    )  # fmt: skip
    size = write_pack(target, manifest, sources, step, no_more_open_than(desk.file))
    return Packed(target, size, manifest, choice.kept)


def _refuse_open(desk: Desk, state: CampaignState) -> None:
    """What is written while it is read would be packed half."""
    going = [attempt.cell for attempt in state.open_attempts]
    if going:
        names = ", ".join(going[:LINES]) + (f" and {len(going) - LINES} more" if len(going) > LINES else "")
        raise MusterError(
            f"{counted(len(going))} {'is' if len(going) == 1 else 'are'} not over: {names}", where=str(desk.root),
            hint="pack it when `muster wait` has ended, or stop the runs: `muster down --runs --because '...'`",
            code="going_on",
        )  # fmt: skip


def _refuse_foreign(desk: Desk, sources: list[Source]) -> None:
    """A campaign that was brought here may name any file of ours as its config, document or output, also by a link."""
    root = os.path.realpath(desk.root)
    real = (os.path.realpath(each.place) for each in sources if each.place)
    outside = [path for path in real if not path.startswith(f"{root}/")]
    if outside and not begun_by_us(desk.state):
        more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
        raise MusterError(
            f"{not_started_here()}, and it names files outside of its folder: {outside[0]}{more}; nothing was packed",
            where=str(desk.root), hint=HINT, code="not_started",
        )  # fmt: skip


def _refuse_secrets(desk: Desk) -> None:
    """A pack is given to others. Earlier versions of the file are in it, too."""
    found = list(_secrets(desk))
    if found:
        raise MusterError(
            f"{found[0]} looks like a secret, and a pack is given to others", where=str(desk.file),
            hint="leave it to the environment that `muster up` is called in, which is never packed; "
            "or pack it all the same: --with secrets", code="secret",
        )  # fmt: skip


def _secrets(desk: Desk) -> Iterator[str]:
    texts = []
    if desk.file.exists():
        texts.append((FILE, desk.file.read_text("utf-8", "replace")))
    for event in desk.store.events():
        name = event.decision.data.get("hash") if event.decision.kind == "campaign" else None
        if name and (text := _taken_text(desk, str(name))):
            texts.append((f"{FILE} as it was taken in at {event.decision.at[:16]}", text))
    for name, text in texts:
        lines = text.splitlines()
        for number, (line, shown) in enumerate(zip(lines, hidden_lines(lines), strict=True), 1):
            if line != shown:
                yield f"line {number} of {name}"


def _taken_text(desk: Desk, name: str) -> str:
    try:
        return campaigns.taken(desk.state, name).text or ""
    except MusterError:
        return ""


class Choice:
    """What of a campaign is packed. Paths in a pack are relative; what lay elsewhere lies in .muster/outside there."""

    def __init__(self, desk: Desk, state: CampaignState, checkpoints: bool) -> None:
        self.desk, self.state, self.checkpoints = desk, state, checkpoints
        self.where = desk.store.where()
        self.outside: set[str] = set()
        self.left_cells: set[str] = set()
        self.kept = 0
        self.log_bytes = desk.store.log.sync()
        self._left: dict[str, Checkpoint] = {}
        self._saved: list[str] = []  # files and folders that are checkpoints
        self._needed: set[str] = set()
        self._read_cells()
        self._read_stamps()

    def sources(self) -> Iterator[Source]:
        found: dict[str, Source] = {}
        for path in self._paths():
            name = self._name(path)
            if name is not None:
                found.setdefault(name, Source(name, path))
        yield from found.values()
        yield Source(LOG, str(self.desk.state / "decisions.jsonl"), limit=self.log_bytes)
        left = LeftOut({token: replace(each, path=self._told(each.path)) for token, each in self._left.items()})
        if self._left:
            yield Source(f".muster/{LEFT_OUT}", data=msgspec.json.encode(left, order="sorted"))
        prefixes = sorted({*self.where.outside, *self._prefixes()})
        if prefixes:
            yield Source(f".muster/{OUTSIDE_LIST}", data=msgspec.json.encode(prefixes))

    @property
    def hashed(self) -> frozenset[str]:
        """Files by whose hashes numbers are traced."""
        return frozenset(self._needed)

    def folders(self) -> list[str]:
        """Of outputs: one in which nothing but its checkpoint was is still there."""
        names = {self._told(path) for path in self._outputs() if Path(path).is_dir()}
        placed = (f".muster/{OUTSIDE}{name}" if name.startswith("/") else name for name in names)
        return sorted(name for name in placed if name != ".")

    # -- which files

    def _paths(self) -> Iterator[str]:
        for entry in files_of(self.desk.root, self.state):
            if entry.plain and self._wanted(entry):
                yield entry.path
        yield from sorted(self._needed)
        for path in self._saved if self.checkpoints else ():
            yield from _below(path)
        for named in (self.desk.file, *self._documents(), *self._configs()):
            if named.is_file():
                yield str(named)

    def _wanted(self, entry: Entry) -> bool:
        if entry.kind == "lease":
            return False
        if entry.kind == "state":
            return self._wanted_state(os.path.relpath(entry.path, self.desk.state))
        if entry.kind in ("attempt", "report"):
            return not Path(entry.path).name.endswith(".lock")
        if self._is_saved(entry.path):
            return False
        return entry.bytes <= LARGEST_TEXT and _is_text(entry.path)

    def _wanted_state(self, name: str) -> bool:
        return name not in WRITTEN and not is_of_one_machine(name)

    def _is_saved(self, path: str) -> bool:
        return any(path == saved or path.startswith(f"{saved}/") for saved in self._saved)

    def _documents(self) -> Iterator[Path]:
        """Bound texts, with their bindings."""
        root = self.desk.root
        named = [root / str(name) for name in (self.state.campaign.report or {}).get("documents") or ()]
        beside = [path.with_name(path.name.removesuffix(SUFFIX)) for path in root.glob(f"*{SUFFIX}")]
        for path in (*named, *beside):
            yield path
            yield path.with_name(path.name + SUFFIX)

    def _configs(self) -> Iterator[Path]:
        """Of jobs and of a loop's variants."""
        names = [path for job in self.state.campaign.jobs for path in (job.config, *job.configs.values()) if path]
        names += [variant.config for variant in self.state.loop.variants]
        yield from (self.desk.root / name for name in names)

    # -- what numbers rest on

    def _read_cells(self) -> None:
        desk, status = self.desk, look(self.desk, self.state)
        reader = Reader(desk, HashCache(desk.state), values=False)
        needs = needed_cells(self.state.campaign, [cell.record.cell for cell in status.cells])
        records = list(done_cells(status))
        used = used_files(named_files(reader, records, needs))
        for record in records:
            found, _ = reader.origins(record, self.state.campaign, used.get(record.cell.id))
            self._needed.update(path for path, digest in found.files.items() if digest is not None)
            token = record.completed.token if record.completed else ""
            self._take_checkpoint(record.cell.id, token, found.checkpoint)
        reader.hashes.save()

    def _take_checkpoint(self, cell: str, token: str, found: Checkpoint | None) -> None:
        if found is None or found.sha256 is None:
            return
        there = os.path.lexists(found.path)
        if there:
            self._saved.append(found.path)
        if there and self.checkpoints:
            self.kept += 1
        elif found.path not in self._needed:
            self._left[token] = found
            self.left_cells.add(cell)

    def _read_stamps(self) -> None:
        """What verify looks at: derived files wherever they lie, and the files behind their numbers."""
        for stamp in stamps(self.desk.root):
            named = [str(self.desk.root / path) for path in stamp.files]
            named += [path for cell in stamp.basis.cells.values() for path in cell.files]
            self._needed.update(path for path in named if Path(path).is_file())

    # -- where they go

    def _outputs(self) -> Iterator[str]:
        for record in self.state.cells.values():
            for attempt in record.attempts:
                if attempt.outcome and attempt.outcome.output:
                    yield attempt.outcome.output

    def _told(self, path: str) -> str:
        """As it is recorded: relative to the campaign's folder where it lies in it."""
        return self.where.inside(os.path.normpath(path))

    def _name(self, path: str) -> str | None:
        """In the pack; None: it is of this machine only."""
        told = self._told(path)
        if not told.startswith("/"):
            inner = told.removeprefix(".muster/")
            return told if inner == told or self._wanted_state(inner) or inner == "decisions.jsonl" else None
        self.outside.add(told)
        return f".muster/{OUTSIDE}{told}"

    def _prefixes(self) -> Iterator[str]:
        """What leads to them where this is unpacked: the output that they lie in, or else each by itself."""
        outputs = [told for path in self._outputs() if (told := self._told(path)).startswith("/") and told != "/"]
        yield from outputs
        for path in self.outside:
            if not any(path == output or path.startswith(f"{output}/") for output in outputs):
                yield path


def _is_text(path: str) -> bool:
    name = Path(path).name
    return name.endswith(TEXTS) or EVENTS in name


def _below(path: str) -> Iterator[str]:
    if not Path(path).is_dir():
        yield path
        return
    for folder, _, names in walk(path):
        for name in sorted(names):
            if (found := Path(folder, name)).is_file():
                yield str(found)


def mark_known(state: Path, folder: Path) -> None:
    """Before it can be seen: a campaign of a newer Muster would be refused by every command."""
    refuse_newer_state(state)
    mark_unpacked(state, folder)


def known_extras(asked: list[str]) -> frozenset[str]:
    unknown = [each for each in asked if each not in EXTRAS]
    if unknown:
        raise UsageError(f"--with {unknown[0]}: there is no such extra", hint=f"known: {', '.join(EXTRAS)}")
    return frozenset(asked)


def packed_json(found: Packed) -> dict[str, Any]:
    """The object of `muster pack --json`."""
    manifest = found.manifest
    return {
        "file": str(found.file),
        "bytes": found.size,
        **contents_json(manifest),
        "checkpoints": found.checkpoints,
    }


def contents_json(manifest: PackManifest) -> dict[str, Any]:
    counts: Mapping[str, Any] = {"bytes": manifest.log.bytes, "at": manifest.log.at}
    return {
        "campaign": manifest.campaign,
        "version": manifest.version,
        "log": dict(counts),
        "files": len(manifest.files),
        "content_bytes": manifest.size,
        "outside": manifest.outside,
        "left_out": list(manifest.left_out),
    }
