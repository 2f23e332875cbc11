"""Texts as files: encodings, line ends, refusals, old versions kept, crashes in the middle."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from document_world import STORY, quantities

from muster.app.documents import bind_update_audit, document_files
from muster.model.errors import MusterError, UsageError

NOW = datetime(2026, 2, 23, 17, 23, 1)
KNOWN = quantities(STORY)
ROW = "| v2_full | 1.918±0.410 | 0.999±0.223 |"
NEW = "| v2_full | 2.026±0.355 | 1.117±0.214 |"
TEXT = f"# 结果\n\n| config | ID score | OOD score |\n|---|---|---|\n{ROW}\n\n三个配置的 ID 得分都是 1.684±0.741。\n"


def written(folder: Path, text: str = TEXT, encoding: str = "utf-8", name: str = "ppt.md") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def update(path: Path, **more: object) -> bind_update_audit.UpdateResult:
    (done,) = bind_update_audit.update_documents([path], KNOWN, None, path.parent, NOW, **more)  # type: ignore[arg-type]
    return done


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "gb18030"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_encoding_line_ends_and_the_last_newline_stay(tmp_path: Path, encoding: str, newline: str, end: str) -> None:
    text = (TEXT.rstrip("\n") + end).replace("\n", newline)
    path = written(tmp_path, text, encoding)
    bound = bind_update_audit.bind_document(path, KNOWN)
    assert [each.binding.token for each in bound.fixed] == ["1.918±0.410", "0.999±0.223"]
    assert path.read_bytes() == text.encode(encoding)
    done = update(path)
    assert path.read_bytes() == text.replace(ROW, NEW).encode(encoding)
    assert done.kept == tmp_path / "reports" / "documents" / "ppt.md.before-20260223T172301"
    assert done.kept.read_bytes() == text.encode(encoding)
    assert [(each.spot.line, each.spot.text, each.new) for each in done.changes] == [
        (5, "1.918±0.410", "2.026±0.355"), (5, "0.999±0.223", "1.117±0.214"),
    ]  # fmt: skip
    before = path.stat()
    again = update(path)
    assert (again.changes, again.unchanged, again.kept, again.diff) == ((), 2, None, ())
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert len(list((tmp_path / "reports" / "documents").iterdir())) == 1


def test_mode_and_other_files_stay(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.chmod(0o640)
    bind_update_audit.bind_document(path, KNOWN)
    update(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ppt.md", "ppt.md.muster.json", "reports"]


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = written(tmp_path / "real")
    link = tmp_path / "ppt.md"
    link.symlink_to(path)
    bind_update_audit.bind_document(link, KNOWN)
    assert (tmp_path / "real" / "ppt.md.muster.json").exists()
    update(link)
    assert link.is_symlink()
    assert NEW in path.read_text()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert len(bind_update_audit.bind_document(path, KNOWN, dry_run=True).fixed) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["ppt.md"]
    bind_update_audit.bind_document(path, KNOWN)
    before = sorted(tmp_path.rglob("*"))
    done = update(path, dry_run=True)
    assert [line for line in done.diff if line[0] in "+-"] == ["--- ppt.md", "+++ ppt.md", f"-{ROW}", f"+{NEW}"]
    assert (path.read_text(), sorted(tmp_path.rglob("*"))) == (TEXT, before)


# -- bad input


def binary(folder: Path) -> Path:
    return written(folder, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin-1", "a.md")


def large(folder: Path) -> Path:
    path = folder / "large.md"
    with open(path, "wb") as file:
        file.truncate(50 << 20)
    return path


def many_lines(folder: Path) -> Path:
    (folder / "fences.md").write_bytes(b"```\n" * 250_000)
    return folder / "fences.md"


def itself(folder: Path) -> Path:
    (folder / "loop.md").symlink_to("loop.md")
    return folder / "loop.md"


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.md")
    return folder / "pipe.md"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder / "none.md", "there is no such file"), (lambda folder: folder, "this is a folder"),
        (binary, "binary file"), (large, "it has 50 MB: too large"), (many_lines, "it has 250,000 lines: too many"),
        (itself, "it can't be read"), (pipe, "no ordinary file"),
        (lambda folder: written(folder, TEXT, "utf-16"), "it is UTF-16"), (lambda folder: written(folder, TEXT, "utf-32"), "it is UTF-32"),
        (lambda folder: written(folder, "caf\xe9 1.68\xb10.74", "latin-1"), "neither UTF-8 nor GBK"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_refused_in_one_sentence(tmp_path: Path, make: object, said: str) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    for act in (bind_update_audit.bind_document, bind_update_audit.audit_document):
        with pytest.raises(UsageError) as refused:
            act(path, KNOWN)
        assert said in refused.value.message
        assert refused.value.where == str(path)
    with pytest.raises(UsageError, match=said):
        update(path)


def test_a_read_only_text_is_bound_and_audited_but_not_changed(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.chmod(0o444)
    assert len(bind_update_audit.bind_document(path, KNOWN).fixed) == 2
    assert bind_update_audit.audit_document(path, KNOWN).counts["stale"] == 2
    with pytest.raises(MusterError, match="read-only; nothing was changed") as refused:
        update(path)
    assert "chmod u+w" in refused.value.hint
    assert path.read_text() == TEXT
    assert not (tmp_path / "reports").exists()
    assert update(path, dry_run=True).diff


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)

    def refuse(*args: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / "x"))

    monkeypatch.setattr(document_files, "write_partial_file", refuse)
    with pytest.raises(MusterError, match="it can't be written: Permission denied"):
        bind_update_audit.bind_document(path, KNOWN)


def test_a_text_without_bindings_says_how_to_bind_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing in it is bound yet") as refused:
        update(written(tmp_path))
    assert "muster docs bind ppt.md" in refused.value.hint


def test_an_empty_text_is_a_text(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    assert bind_update_audit.bind_document(path, KNOWN).fixed == ()
    assert not bind_update_audit.audit_document(path, KNOWN).wrong


def test_without_results_nothing_is_done(tmp_path: Path) -> None:
    with pytest.raises(MusterError, match="there are no results yet"):
        bind_update_audit.bind_document(written(tmp_path), [])


@pytest.mark.parametrize("data", [b"", b"{", b'{"version": 9}', b"\xff\xff"])
def test_damaged_bindings_are_told_and_left_alone(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path)
    (tmp_path / "ppt.md.muster.json").write_bytes(data)
    for act in (
        lambda: bind_update_audit.bind_document(path, KNOWN),
        lambda: update(path),
        lambda: bind_update_audit.audit_document(path, KNOWN),
    ):
        with pytest.raises(MusterError, match="the bindings are damaged") as refused:
            act()
        assert refused.value.where.endswith("ppt.md.muster.json")
    assert (tmp_path / "ppt.md.muster.json").read_bytes() == data


def test_bindings_of_another_text_are_not_used(tmp_path: Path) -> None:
    bind_update_audit.bind_document(written(tmp_path), KNOWN)
    other = written(tmp_path, TEXT + "more\n", name="other.md")
    (tmp_path / "ppt.md.muster.json").rename(tmp_path / "other.md.muster.json")
    with pytest.raises(MusterError, match=r"these are the bindings of ppt\.md, another text"):
        update(other)
    written(tmp_path, TEXT, name="other.md")  # the same text under another name: it was renamed
    assert len(update(other).changes) == 2


# -- edits


def test_edits_elsewhere_do_no_harm_and_edits_here_refuse_as_a_whole(tmp_path: Path) -> None:
    path = written(tmp_path)
    bind_update_audit.bind_document(path, KNOWN)
    path.write_text("前言\n\n" + TEXT)
    assert len(update(path).changes) == 2
    now = path.read_text()
    path.write_text(now.replace("1.117±0.214", "1.2"))
    with pytest.raises(MusterError) as refused:
        update(path)
    assert refused.value.code == "lost"
    assert (
        "line 7: 1.117±0.214 (ood/score/v2_full/mean and ood/score/v2_full/sd): its place is gone"
        in refused.value.message
    )
    assert path.read_text() == now.replace("1.117±0.214", "1.2")


def test_a_row_that_was_renamed_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    path = written(tmp_path)
    bind_update_audit.bind_document(path, KNOWN)
    path.write_text(TEXT.replace("| v2_full |", "| v2_u_only |"))
    with pytest.raises(MusterError, match="the text near it now speaks of id/score/v2_u_only"):
        update(path)
    path.write_text(TEXT.replace("| v2_full |", "| v3_full |"))
    with pytest.raises(MusterError, match="a name that is not known: v3_full"):
        update(path)


def test_binding_again_keeps_what_stands_and_tells_what_is_lost(tmp_path: Path) -> None:
    path = written(tmp_path)
    asked: list[str] = []

    def choose(about: object) -> int:
        asked.append(about.spot.text)  # type: ignore[attr-defined]
        return 1

    bound = bind_update_audit.bind_document(path, KNOWN, choose)
    assert asked == ["1.684±0.741"]
    assert [(each.binding.keys[0], each.binding.by) for each in bound.fixed][2] == ("id/score/v2_u_only/mean", "chosen")
    path.write_text(TEXT + "\nThe OOD cost of v2_full is 14.5.\n")
    again = bind_update_audit.bind_document(path, KNOWN)
    assert [(each.binding.by, each.old) for each in again.fixed][2:] == [("chosen", True), ("place and value", False)]
    assert again.ambiguous == ()
    path.write_text(TEXT.replace(ROW, ""))
    last = bind_update_audit.bind_document(path, KNOWN)
    assert [each.spot.text for each in last.lost] == ["1.918±0.410", "0.999±0.223", "14.5"]
    assert [each.binding.by for each in last.fixed] == ["chosen"]


# -- an incomplete matrix


def test_numbers_of_an_incomplete_matrix_are_marked_or_not_written(tmp_path: Path) -> None:
    path = written(tmp_path)
    bind_update_audit.bind_document(path, KNOWN)
    with pytest.raises(bind_update_audit.IncompleteMatrix, match=r"incomplete \(16/40\)") as refused:
        bind_update_audit.update_documents([path], KNOWN, "PARTIAL 16/40", tmp_path, NOW)
    assert (refused.value.exit, path.read_text()) == (3, TEXT)
    bind_update_audit.update_documents([path], KNOWN, "PARTIAL 16/40", tmp_path, NOW, allowed=True)
    assert "2.026±0.355 (PARTIAL 16/40) | 1.117±0.214 (PARTIAL 16/40) |" in path.read_text()
    update(path)
    assert NEW in path.read_text()


def test_missing_seeds_count_even_if_nobody_says_partial(tmp_path: Path) -> None:
    path = written(tmp_path)
    bind_update_audit.bind_document(path, KNOWN)
    few = quantities(STORY, k=3)
    with pytest.raises(bind_update_audit.IncompleteMatrix, match="3/5"):
        bind_update_audit.update_documents([path], few, None, tmp_path, NOW)
    bind_update_audit.update_documents([path], few, None, tmp_path, NOW, allowed=True)
    assert path.read_text().count("(PARTIAL 3/5)") == 2


@pytest.mark.parametrize("cell", ["0.999±0.223", "0.999 (0.223)", "**0.999** ± 0.223", "$0.999 \\pm 0.223$", "0.999"])
def test_marks_survive_edits_and_go_away(tmp_path: Path, cell: str) -> None:
    text = f"| config | OOD score (mean, std) |\n|---|---|\n| v2_full | {cell} |\n"
    path = written(tmp_path, text)
    assert [each.binding.by for each in bind_update_audit.bind_document(path, KNOWN).fixed] == ["place and value"]
    bind_update_audit.update_documents([path], KNOWN, "PARTIAL 16/40", tmp_path, NOW, allowed=True)
    path.write_text("edited\n\n" + path.read_text())
    bind_update_audit.update_documents([path], KNOWN, "PARTIAL 17/40", tmp_path, NOW, allowed=True)
    assert path.read_text().count("PARTIAL 17/40") == path.read_text().count("PARTIAL") == 1
    path.write_text("edited again\n" + path.read_text())
    (path.with_name("ppt.md.muster.json")).unlink()
    bind_update_audit.bind_document(path, KNOWN)
    update(path)
    wanted = text.replace("0.999", "1.117").replace("0.223", "0.214")
    assert path.read_text() == f"edited again\nedited\n\n{wanted}"


# -- all or nothing, and crashes


def test_of_several_texts_none_is_changed_if_one_refuses(tmp_path: Path) -> None:
    first, second = written(tmp_path, name="a.md"), written(tmp_path, name="b.md")
    for path in (first, second):
        bind_update_audit.bind_document(path, KNOWN)
    second.write_text(TEXT.replace("0.999", "0.9"))
    with pytest.raises(MusterError):
        bind_update_audit.update_documents([first, second], KNOWN, None, tmp_path, NOW)
    assert first.read_text() == TEXT


# update in a process that dies as if killed, after so many files were put in their place
DYING = """
import os, sys
from datetime import datetime
from pathlib import Path
from document_world import STORY, quantities
from muster.app.documents import bind_update_audit as docs
real, left = Path.replace, int(sys.argv[2])
def replace(self, target):
    global left
    done = real(self, target)
    left -= 1
    if not left:
        os._exit(9)
    return done
Path.replace = replace
path = Path(sys.argv[1])
docs.update_documents([path], quantities(STORY), None, path.parent, datetime(2026, 2, 23))
"""


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_crash_in_the_middle_is_mended_by_the_next_update(tmp_path: Path, step: int) -> None:
    path = written(tmp_path)
    bind_update_audit.bind_document(path, KNOWN)
    here = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    died = subprocess.run([sys.executable, "-c", DYING, str(path), str(step)], env=here, capture_output=True, text=True)
    assert died.returncode == 9, died.stderr
    assert path.read_text() == (TEXT if step == 1 else TEXT.replace(ROW, NEW))
    assert (tmp_path / "reports" / "documents" / "ppt.md.before-20260223T000000").read_text() == TEXT
    update(path)
    assert path.read_text() == TEXT.replace(ROW, NEW)
    assert not list(tmp_path.glob("*.next"))
    assert len(bind_update_audit.bind_document(path, KNOWN).fixed) == 2


def test_a_text_that_changes_meanwhile_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    bind_update_audit.bind_document(path, KNOWN)
    real = document_files._keep_old_version

    def keep(*args: object) -> Path:
        path.write_text("somebody else's words")
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(document_files, "_keep_old_version", keep)
    with pytest.raises(MusterError, match="changed meanwhile; nothing was written"):
        update(path)
    assert path.read_text() == "somebody else's words"


# -- a report


def test_a_report_updates_what_is_bound_and_names_the_rest(tmp_path: Path) -> None:
    bound, free = written(tmp_path, name="bound.md"), written(tmp_path, name="free.md")
    bind_update_audit.bind_document(bound, KNOWN)
    done = bind_update_audit.update_campaign_documents(tmp_path, ["bound.md", "free.md", "none.md"], KNOWN, None)
    assert (done.updated, done.unbound) == (("bound.md",), ("free.md",))
    assert [(name, "there is no such file" in why) for name, why in done.refused] == [("none.md", True)]
    assert (NEW in bound.read_text(), free.read_text()) == (True, TEXT)
    bind_update_audit.update_campaign_documents(tmp_path, ["bound.md"], KNOWN, "PARTIAL 16/40")
    assert "(PARTIAL 16/40)" in bound.read_text()
