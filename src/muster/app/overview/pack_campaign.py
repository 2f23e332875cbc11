"""Chooses what goes into a pack: all that report, verify and trace need elsewhere; no secret, no checkpoint unasked."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

import muster
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle
from muster.app.campaign.file_manifest import ManifestEntry, campaign_files
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.stamp_files import read_all_stamps
from muster.app.facts.stamp_basis import (
    OMITTED_FILE,
    OmittedCheckpoints,
    OriginReader,
    done_cells_behind_results,
    files_named_by_commands,
    files_used_of_cells,
)
from muster.app.overview.pack_format import PACK_FORMAT, LogRevision, PackManifest, is_machine_specific
from muster.app.overview.write_pack import (
    PackProgress,
    PackSource,
    describe_pack_files,
    mask_pack_sources,
    refuse_pack_target,
    write_pack,
)
from muster.engine.ports.services import installed_services
from muster.files.atomic_write import mode_no_wider_than
from muster.files.bounded_walk import walk_folders
from muster.files.campaign_ownership import NOT_STARTED_HINT, begun_by_us, describe_not_started_here
from muster.files.campaign_snapshots import load_campaign_snapshot
from muster.files.state_folder import SIDECAR_SUFFIX, mark_unpacked_state
from muster.model.campaign_location import OUTSIDE, OUTSIDE_LIST
from muster.model.campaign_state import CampaignState
from muster.model.cell import map_needed_cells
from muster.model.errors import MusterError, UsageError
from muster.model.provenance import CheckpointOrigin
from muster.readers.file_hashes import HashCache
from muster.text.hide_secrets import hide_secrets_in_yaml
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

PACK_EXTRAS = ("checkpoints", "secrets")
DECISION_LOG_PATH = ".muster/decisions.jsonl"
SPECIAL_STATE_FILES = frozenset({"decisions.jsonl", OMITTED_FILE, OUTSIDE_LIST})  # of .muster: each in its own way
# of outputs: what people and readers of metrics read. Arrays, videos, weights stay, unless a number is read from them
TEXT_ENDINGS = (".json", ".jsonl", ".csv", ".tsv", ".yaml", ".yml", ".toml", ".txt", ".log", ".md", ".wandb", ".ini")
EVENT_FILE_PART = "tfevents"  # in the names of TensorBoard's files
LARGEST_TEXT = 64 << 20  # bytes: larger ones only where a number is read from them
MOST_NAMED_CELLS = 3


@dataclass(frozen=True, slots=True)
class PackResult:
    file: Path
    size: int
    manifest: PackManifest
    checkpoints: int  # that are in it


def pack_campaign(
    desk: CampaignHandle, target: Path, extras: frozenset[str], step: PackProgress, *, force: bool = False
) -> PackResult:
    refuse_pack_target(target, force=force)
    if "secrets" not in extras:
        _refuse_secret_lines(desk)
    state = desk.load()
    _refuse_open_attempts(desk, state)
    choice = PackSelection(desk, state, "checkpoints" in extras)
    sources = list(choice.sources())
    _refuse_foreign_files(desk, sources)
    if "secrets" not in extras:
        sources = list(mask_pack_sources(sources, choice.hashed))
    files = describe_pack_files(sources, step)
    last = desk.store.events()[-1].decision.at
    manifest = PackManifest(
        PACK_FORMAT,
        muster.__version__,
        state.campaign.name,
        LogRevision(choice.log_bytes, last),
        tuple(files),
        tuple(choice.folders()),
        tuple(sorted(choice.left_cells)),
        len(choice.outside),
    )
    size = write_pack(target, manifest, sources, step, mode_no_wider_than(desk.file))
    return PackResult(target, size, manifest, choice.kept)


def _refuse_open_attempts(desk: CampaignHandle, state: CampaignState) -> None:
    """What is written while it is read would be packed half."""
    going = [attempt.cell for attempt in state.open_attempts]
    if going:
        raise MusterError(
            phrase(
                "overview.cells_not_over",
                n=len(going),
                cells=join_few_names(going, MOST_NAMED_CELLS),
            ),
            where=str(desk.root),
            hint=phrase("overview.pack_when_runs_ended"),
            code="going_on",
        )


def _refuse_foreign_files(desk: CampaignHandle, sources: list[PackSource]) -> None:
    """A campaign that was brought here may name any file of ours as its config, document or output, also by a link."""
    root = os.path.realpath(desk.root)
    real = (os.path.realpath(each.place) for each in sources if each.place)
    outside = [path for path in real if not path.startswith(f"{root}/")]
    if outside and not begun_by_us(desk.state):
        raise MusterError(
            phrase(
                "overview.pack_would_hold_foreign_files",
                not_started_here=describe_not_started_here(),
                files=join_few_names(outside, 1),
            ),
            where=str(desk.root),
            hint=phrase(NOT_STARTED_HINT),
            code="not_started",
        )


def _refuse_secret_lines(desk: CampaignHandle) -> None:
    """A pack is given to others. Earlier versions of the file are in it, too."""
    found = list(_find_secret_lines(desk))
    if found:
        raise MusterError(
            phrase("overview.line_looks_like_secret", place=found[0]),
            where=str(desk.file),
            hint=phrase("overview.leave_secret_to_environment"),
            code="secret",
        )


def _find_secret_lines(desk: CampaignHandle) -> Iterator[str]:
    texts = []
    if desk.file.exists():
        texts.append((CAMPAIGN_FILE_NAME, desk.file.read_text("utf-8", "replace")))
    for event in desk.store.events():
        name = event.decision.data.get("hash") if event.decision.kind == "campaign" else None
        if name and (text := _snapshot_text(desk, str(name))):
            texts.append(
                (phrase("overview.file_as_taken_in", file=CAMPAIGN_FILE_NAME, time=event.decision.at[:16]), text)
            )
    for name, text in texts:
        lines = text.splitlines()
        for number, (line, shown) in enumerate(zip(lines, hide_secrets_in_yaml(lines), strict=True), 1):
            if line != shown:
                yield phrase("overview.line_of_file", line=number, file=name)


def _snapshot_text(desk: CampaignHandle, name: str) -> str:
    try:
        return load_campaign_snapshot(desk.state, name).text or ""
    except MusterError:
        return ""


class PackSelection:
    """What of a campaign is packed. Paths in a pack are relative; what lay elsewhere lies in .muster/outside there."""

    def __init__(self, desk: CampaignHandle, state: CampaignState, checkpoints: bool) -> None:
        self.desk, self.state, self.checkpoints = desk, state, checkpoints
        self.where = desk.store.where()
        self.outside: set[str] = set()
        self.left_cells: set[str] = set()
        self.kept = 0
        self.log_bytes = desk.store.log.sync()
        self._left: dict[str, CheckpointOrigin] = {}
        self._saved: list[str] = []  # files and folders that are checkpoints
        self._needed: set[str] = set()
        self._read_cells()
        self._read_stamps()

    def sources(self) -> Iterator[PackSource]:
        found: dict[str, PackSource] = {}
        for path in self._paths():
            name = self._name(path)
            if name is not None:
                found.setdefault(name, PackSource(name, path))
        yield from found.values()
        yield PackSource(DECISION_LOG_PATH, str(self.desk.state / "decisions.jsonl"), limit=self.log_bytes)
        left = OmittedCheckpoints(
            {token: replace(each, path=self._told(each.path)) for token, each in self._left.items()}
        )
        if self._left:
            yield PackSource(f".muster/{OMITTED_FILE}", data=msgspec.json.encode(left, order="sorted"))
        prefixes = sorted({*self.where.outside, *self._prefixes()})
        if prefixes:
            yield PackSource(f".muster/{OUTSIDE_LIST}", data=msgspec.json.encode(prefixes))

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
        for entry in campaign_files(self.desk.root, self.state):
            if entry.plain and self._wanted(entry):
                yield entry.path
        yield from sorted(self._needed)
        for path in self._saved if self.checkpoints else ():
            yield from _files_of_checkpoint(path)
        for named in (self.desk.file, *self._documents(), *self._configs()):
            if named.is_file():
                yield str(named)

    def _wanted(self, entry: ManifestEntry) -> bool:
        if entry.kind == "lease":
            return False
        if entry.kind == "state":
            return self._wanted_state(os.path.relpath(entry.path, self.desk.state))
        if entry.kind in ("attempt", "report"):
            return not Path(entry.path).name.endswith(".lock")
        if self._is_saved(entry.path):
            return False
        return entry.bytes <= LARGEST_TEXT and _is_text_file(entry.path)

    def _wanted_state(self, name: str) -> bool:
        return name not in SPECIAL_STATE_FILES and not is_machine_specific(name)

    def _is_saved(self, path: str) -> bool:
        return any(path == saved or path.startswith(f"{saved}/") for saved in self._saved)

    def _documents(self) -> Iterator[Path]:
        """Bound texts, with their bindings."""
        root = self.desk.root
        named = [root / name for name in self.state.campaign.documents]
        beside = [path.with_name(path.name.removesuffix(SIDECAR_SUFFIX)) for path in root.glob(f"*{SIDECAR_SUFFIX}")]
        for path in (*named, *beside):
            yield path
            yield path.with_name(path.name + SIDECAR_SUFFIX)

    def _configs(self) -> Iterator[Path]:
        """Of jobs and of a loop's variants."""
        names = [path for job in self.state.campaign.jobs for path in (job.config, *job.configs.values()) if path]
        names += [variant.config for variant in self.state.loop.variants]
        yield from (self.desk.root / name for name in names)

    # -- what numbers rest on

    def _read_cells(self) -> None:
        desk, status = self.desk, observe_campaign(self.desk, self.state)
        reader = OriginReader(desk, HashCache(desk.state), values=False)
        needs = map_needed_cells(self.state.campaign, [cell.record.cell for cell in status.cells])
        records = list(done_cells_behind_results(status))
        used = files_used_of_cells(files_named_by_commands(reader, records, needs))
        for record in records:
            found, _ = reader.origins(record, self.state.campaign, used.get(record.cell.id))
            self._needed.update(path for path, digest in found.files.items() if digest is not None)
            token = record.completed.token if record.completed else ""
            self._take_checkpoint(record.cell.id, token, found.checkpoint)
        reader.hashes.save()

    def _take_checkpoint(self, cell: str, token: str, found: CheckpointOrigin | None) -> None:
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
        for stamp in read_all_stamps(self.desk.root):
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


def _is_text_file(path: str) -> bool:
    name = Path(path).name
    return name.endswith(TEXT_ENDINGS) or EVENT_FILE_PART in name


def _files_of_checkpoint(path: str) -> Iterator[str]:
    if not Path(path).is_dir():
        yield path
        return
    for folder, _, names in walk_folders(path):
        for name in sorted(names):
            if (found := Path(folder, name)).is_file():
                yield str(found)


def mark_unpacked_campaign(state: Path, folder: Path) -> None:
    """Before it can be seen: a campaign of a newer Muster would be refused by every command."""
    installed_services().storage.refuse_newer(state)
    mark_unpacked_state(state, folder)


def parse_pack_extras(asked: list[str]) -> frozenset[str]:
    unknown = [each for each in asked if each not in PACK_EXTRAS]
    if unknown:
        raise UsageError(
            phrase("overview.no_such_extra", extra=unknown[0]),
            hint=phrase("overview.known_extras", extras=", ".join(PACK_EXTRAS)),
        )
    return frozenset(asked)


def pack_result_as_json(found: PackResult) -> dict[str, Any]:
    """The object of `muster pack --json`."""
    manifest = found.manifest
    return {
        "file": str(found.file),
        "bytes": found.size,
        **pack_contents_as_json(manifest),
        "checkpoints": found.checkpoints,
    }


def pack_contents_as_json(manifest: PackManifest) -> dict[str, Any]:
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
