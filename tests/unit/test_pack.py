"""Packs: what is written is read back as it was, and whatever else a file may hold is refused without a trace."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.app.overview.pack_format import PACK_FORMAT, LogRevision, PackManifest, compression_of_name, encode_manifest
from muster.app.overview.unpack_campaign import default_unpack_folder, unpack_campaign
from muster.app.overview.write_pack import PackSource, describe_pack_files, refuse_pack_target, write_pack
from muster.model.errors import MusterError, UsageError

LONG = "/".join(["a folder with a long name 中文"] * 8) + "/metrics.jsonl"
FILES = {
    "campaign.yaml": b"muster: 1\n",
    ".muster/decisions.jsonl": b'{"kind": "campaign"}\n' * 40,
    ".muster/attempts/train/0/1/out/empty.txt": b"",
    f".muster/outside/{LONG}": bytes(range(256)) * 9,
}


def quiet(*_: object) -> None: ...


def make(folder: Path, files: dict[str, bytes] = FILES, **more: Any) -> Path:
    folder.mkdir(exist_ok=True)
    sources = []
    for at, (path, data) in enumerate(files.items()):
        place = folder / f"source-{at}"
        place.write_bytes(data)
        os.utime(place, ns=(10**18 + at, 10**18 + at))
        sources.append(PackSource(path, str(place)))
    listed = describe_pack_files(sources, quiet)
    manifest = PackManifest(PACK_FORMAT, "0", "c", LogRevision(1, "now"), tuple(listed), **more)
    write_pack(folder / "made.tar.gz", manifest, sources, quiet)
    return folder / "made.tar.gz"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(pack: Path, folder: Path) -> MusterError:
    before = sorted(folder.parent.iterdir())
    with pytest.raises(MusterError) as caught:
        unpack_campaign(pack, folder, quiet, quiet)
    assert sorted(folder.parent.iterdir()) == before
    assert caught.value.hint
    return caught.value


def test_what_was_packed_is_there_again_with_its_times_and_closed_to_others(tmp_path: Path) -> None:
    pack = make(tmp_path / "a", folders=("outputs/x",))
    found = unpack_campaign(pack, tmp_path / "there", quiet, quiet)
    assert contents(found.folder) == dict(sorted(FILES.items()))
    assert (found.folder / "campaign.yaml").stat().st_mtime_ns == 10**18
    assert (found.folder / "outputs" / "x").is_dir()
    for path in found.folder.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert not mode & 0o7022
        if ".muster" in path.parts:
            assert mode == (0o700 if path.is_dir() else 0o600)
        elif path.is_file():
            assert not mode & 0o111


def test_the_same_files_make_the_same_pack(tmp_path: Path) -> None:
    assert make(tmp_path / "a").read_bytes() == make(tmp_path / "b").read_bytes()


def test_the_manifest_is_the_first_member_and_names_every_file(tmp_path: Path) -> None:
    with tarfile.open(make(tmp_path / "a")) as tar:
        names = tar.getnames()
        first = tar.extractfile(names[0])
        assert first is not None
        manifest = json.loads(first.read())
    assert names[0] == "muster-pack.json"
    assert names[1:] == [file["path"] for file in manifest["files"]] == sorted(FILES)
    assert {file["sha256"] for file in manifest["files"]} == {hashlib.sha256(d).hexdigest() for d in FILES.values()}


def test_an_empty_folder_may_be_unpacked_into_and_no_other(tmp_path: Path) -> None:
    pack = make(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    unpack_campaign(pack, tmp_path / "empty", quiet, quiet)
    assert "is not empty" in refused(pack, tmp_path / "empty").message
    (tmp_path / "file").write_text("")
    assert "is no folder" in refused(pack, tmp_path / "file").message
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert "is no folder" in refused(pack, tmp_path / "link").message


# -- what a pack is not


def tar_of(
    path: Path, *members: tuple[tarfile.TarInfo, bytes], compress: Callable[[bytes], bytes] = gzip.compress
) -> Path:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(compress(made.getvalue()))
    return path


def plain(name: str, data: bytes = b"x", **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def manifest_of(these: dict[str, bytes], **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    listed = [
        {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "mtime_ns": 0}
        for path, data in these.items()
    ]
    told = {"muster_pack": 1, "version": "0", "campaign": "c", "log": {"bytes": 0, "at": ""}, "files": listed, **more}
    return plain("muster-pack.json", json.dumps(told).encode())


YAML = {"campaign.yaml": b"x"}
WITH_EVIL = {**YAML, "evil": b"x"}
CASES: dict[str, tuple[list[tuple[tarfile.TarInfo, bytes]], str]] = {
    "symbolic link": (
        [
            manifest_of(WITH_EVIL),
            plain("campaign.yaml"),
            plain("evil", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        ],
        "a symbolic link",
    ),
    "hard link": (
        [
            manifest_of(WITH_EVIL),
            plain("campaign.yaml"),
            plain("evil", b"", type=tarfile.LNKTYPE, linkname="campaign.yaml"),
        ],
        "a hard link",
    ),
    "device": ([manifest_of(WITH_EVIL), plain("evil", b"", type=tarfile.CHRTYPE)], "a device"),
    "pipe": ([manifest_of(WITH_EVIL), plain("evil", b"", type=tarfile.FIFOTYPE)], "a pipe"),
    "folder": ([manifest_of(WITH_EVIL), plain("evil", b"", type=tarfile.DIRTYPE)], "a folder"),
    "sparse": ([manifest_of(WITH_EVIL), plain("evil", b"", type=tarfile.GNUTYPE_SPARSE)], "no plain file"),
    "absolute": ([manifest_of({**YAML, "/tmp/evil": b"x"})], "which is absolute"),
    "leads out": ([manifest_of({**YAML, "a/../../evil": b"x"})], "which leads out"),
    "leads out by a folder": ([manifest_of(YAML, folders=["../evil"])], "which leads out"),
    "dot": ([manifest_of({**YAML, "a/./b": b"x"})], "no name of a file"),
    "empty name": ([manifest_of({**YAML, "": b"x"})], "which is no name"),
    "too long": ([manifest_of({**YAML, "a" * 300: b"x"})], "too long a name"),
    "the manifest's own name": ([manifest_of({**YAML, "muster-pack.json": b"x"})], "no name of a file"),
    "a controller's intent": ([manifest_of({**YAML, ".muster/intent": b"running"})], "which no pack holds"),
    "a database": ([manifest_of({**YAML, ".muster/campaign.db-wal": b"x"})], "which no pack holds"),
    "an environment": ([manifest_of({**YAML, ".muster/env/1.json": b"x"})], "which no pack holds"),
    "an escape sequence": ([manifest_of(YAML, campaign="c\x1b[2J")], "can't be printed: 'c\\x1b[2J'"),
    "below a file": ([manifest_of({**YAML, "campaign.yaml/x": b"x"})], "below a file"),
    "twice in the manifest": (
        [manifest_of({}, files=[{"path": "campaign.yaml", "size": 1, "sha256": "0" * 64, "mtime_ns": 0}] * 2)],
        "names a file twice",
    ),
    "twice": ([manifest_of(YAML), plain("campaign.yaml"), plain("campaign.yaml")], "is in it twice"),
    "not in the manifest": ([manifest_of(YAML), plain("campaign.yaml"), plain("evil")], "and not in its manifest"),
    "missing": ([manifest_of(WITH_EVIL), plain("campaign.yaml")], "'evil' is missing"),
    "larger than told": ([manifest_of(YAML), plain("campaign.yaml", b"xx")], "has 2 bytes"),
    "other bytes": ([manifest_of(YAML), plain("campaign.yaml", b"y")], "not what its manifest says"),
    "no manifest": ([plain("campaign.yaml")], "does not begin with its manifest"),
    "nothing": ([], "does not begin with its manifest"),
    "no campaign": ([manifest_of({"x": b"x"}), plain("x")], "no campaign in it"),
    "negative size": (
        [manifest_of({}, files=[{"path": "campaign.yaml", "size": -1, "sha256": "0" * 64, "mtime_ns": 0}])],
        "tells no size",
    ),
    "no hash": (
        [manifest_of({}, files=[{"path": "campaign.yaml", "size": 1, "sha256": "../x", "mtime_ns": 0}])],
        "tells no size",
    ),
    "another shape": ([plain("muster-pack.json", b'{"muster_pack": 1}')], "manifest can't be read"),
    "no JSON": ([plain("muster-pack.json", b"\xff")], "manifest can't be read"),
    "a later format": ([plain("muster-pack.json", b'{"muster_pack": 2}')], "its format is 2"),
    "a header without end": (
        [manifest_of(YAML), plain("campaign.yaml", pax_headers={"comment": "x" * (1 << 20)})],
        "a header in it is too long",
    ),
    "a header of another kind": (
        [manifest_of(YAML), plain("campaign.yaml", pax_headers={"linkpath": "/etc/passwd"})],
        "a header in it is damaged",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_no_pack_is_refused_and_leaves_nothing(tmp_path: Path, case: str) -> None:
    members, why = CASES[case]
    error = refused(tar_of(tmp_path / "evil.tar.gz", *members), tmp_path / "there")
    assert why in error.message
    assert not Path("/tmp/evil").exists()


def test_what_claims_more_than_there_is_room_for_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    huge = [{"path": "campaign.yaml", "size": 1 << 60, "sha256": "0" * 64, "mtime_ns": 0}]
    error = refused(tar_of(tmp_path / "evil.tar.gz", manifest_of({}, files=huge)), tmp_path / "there")
    assert "the disk has" in error.message


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"\x1f\x8b", gzip.compress(b"", mtime=0), gzip.compress(b"x" * 5000, mtime=0), b"PK\x03\x04"],
    ids=["empty", "a letter", "cut", "nothing in it", "no tar", "zip"],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.tar.gz").write_bytes(data)
    assert refused(tmp_path / "x.tar.gz", tmp_path / "there").code == "pack"


def test_bytes_behind_the_end_are_refused(tmp_path: Path) -> None:
    pack = make(tmp_path / "a")
    pack.write_bytes(pack.read_bytes() + gzip.compress(b"and more"))
    assert "something follows its end" in refused(pack, tmp_path / "there").message


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_pack_that_was_cut_or_changed_anywhere_is_refused_or_holds_the_same(
    tmp_path: Path, data: st.DataObject
) -> None:
    whole = tmp_path / "whole"
    pack = whole / "made.tar.gz" if whole.exists() else make(whole)
    good = pack.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1), "at")
    how = data.draw(st.sampled_from(["flip", "cut", "drop", "double"]), "how")
    flipped = bytes([good[at] ^ data.draw(st.integers(1, 255), "by")])
    bad = {
        "flip": good[:at] + flipped + good[at + 1 :],
        "cut": good[:at],
        "drop": good[:at] + good[at + 1 :],
        "double": good[:at] + good[at : at + 64] + good[at:],
    }[how]
    other = tmp_path / "other.tar.gz"
    other.write_bytes(bad)
    there = tmp_path / "there"
    try:
        unpack_campaign(other, there, quiet, quiet)
    except MusterError:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["other.tar.gz", "whole"]
        return
    try:
        assert contents(there) == dict(sorted(FILES.items()))
    finally:
        there.rename(whole / f"there-{len(list(whole.iterdir()))}")


# -- writing


def test_a_file_that_changes_while_it_is_packed_leaves_no_pack(tmp_path: Path) -> None:
    source = tmp_path / "log.txt"
    source.write_bytes(b"before")
    listed = describe_pack_files([PackSource("campaign.yaml", str(source))], quiet)
    manifest = PackManifest(PACK_FORMAT, "0", "c", LogRevision(0, ""), tuple(listed))
    for changed in (b"behind", b"be", b""):
        source.write_bytes(changed)
        with pytest.raises(MusterError, match="changed while it was packed"):
            write_pack(tmp_path / "x.tar.gz", manifest, [PackSource("campaign.yaml", str(source))], quiet)
        assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]


def test_an_interrupted_pack_leaves_nothing_and_the_old_one_whole(tmp_path: Path) -> None:
    pack = make(tmp_path / "a")
    before = pack.read_bytes()
    names = sorted(path.name for path in pack.parent.iterdir())

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    source = PackSource("campaign.yaml", data=b"x")
    manifest = PackManifest(PACK_FORMAT, "0", "c", LogRevision(0, ""), tuple(describe_pack_files([source], quiet)))
    with pytest.raises(KeyboardInterrupt):
        write_pack(pack, manifest, [source], interrupted)
    assert pack.read_bytes() == before
    assert sorted(path.name for path in pack.parent.iterdir()) == names


def test_only_so_much_of_the_log_as_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"1\n2\n3\n")
    source = PackSource(".muster/decisions.jsonl", str(log), limit=4)
    manifest = PackManifest(PACK_FORMAT, "0", "c", LogRevision(4, ""), tuple(describe_pack_files([source], quiet)))
    log.write_bytes(b"1\n2\n3\n4\n")  # somebody decides meanwhile
    write_pack(tmp_path / "x.tgz", manifest, [source], quiet)
    unpack_campaign(tmp_path / "x.tgz", tmp_path / "there", quiet, quiet)
    assert (tmp_path / "there" / ".muster" / "decisions.jsonl").read_bytes() == b"1\n2\n"


def test_names_of_packs(tmp_path: Path) -> None:
    assert compression_of_name(Path("a.b.tar.gz")) == ("a.b", "gz")
    assert compression_of_name(Path("a.tar.zst")) == ("a", "zst")
    assert default_unpack_folder(Path("/x/a.tgz"), tmp_path) == tmp_path / "a"
    for name in ("a.zip", "a", ".tar.gz", "a.tar"):
        with pytest.raises(UsageError, match="does not end as a pack does"):
            compression_of_name(Path(name))
    (tmp_path / "old.tar.gz").write_bytes(b"")
    with pytest.raises(UsageError, match="exists"):
        refuse_pack_target(tmp_path / "old.tar.gz", force=False)
    refuse_pack_target(tmp_path / "old.tar.gz", force=True)
    with pytest.raises(UsageError, match="there is no folder"):
        refuse_pack_target(tmp_path / "none" / "a.tar.gz", force=False)


def test_zstandard_where_its_package_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = PackSource("campaign.yaml", data=b"x")
    manifest = PackManifest(PACK_FORMAT, "0", "c", LogRevision(0, ""), tuple(describe_pack_files([source], quiet)))
    target = tmp_path / "x.tar.zst"
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        pass
    else:
        write_pack(target, manifest, [source], quiet)
        unpack_campaign(target, tmp_path / "there", quiet, quiet)
        assert contents(tmp_path / "there") == {"campaign.yaml": b"x"}
        target.unlink()
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MusterError, match="needs the package zstandard"):
        write_pack(target, manifest, [source], quiet)
    assert not target.exists()
    target.write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(MusterError, match="needs the package zstandard"):
        unpack_campaign(target, tmp_path / "elsewhere", quiet, quiet)


def test_a_manifest_is_what_it_was(tmp_path: Path) -> None:
    from muster.app.overview.pack_format import decode_manifest

    manifest = PackManifest(
        PACK_FORMAT,
        "0",
        "c",
        LogRevision(4, "t"),
        tuple(describe_pack_files([PackSource("campaign.yaml", data=b"x")], quiet)),
    )
    assert decode_manifest(encode_manifest(manifest), str(tmp_path)) == manifest
