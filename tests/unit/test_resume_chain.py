"""Which attempts make one run: those that went on from a checkpoint of another, back to one that began from scratch."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.files.state_folder import attempt_folder
from muster.model.attempt import Order
from muster.readers.resume import orders_before, resume_chain

CELL = "train/a/0"


def attempt(state: Path, n: int, resumed_from: str | None = None, cell: str = CELL) -> Order:
    folder = attempt_folder(state, cell, n)
    folder.mkdir(parents=True)
    order = Order(
        cell=cell, n=n, token="t", epoch=1, argv=("true",), cwd="/", env={}, env_file="", slots=(), out=f"{folder}/out",
        output=f"{folder}/out", hash="", claimed_at="", claimed_boot=0.0, boot_id="", retry_cause=None,
        resumed_from=resumed_from, state=str(state), bell="", ballast="", revive=(), revive_s=0.0, axes={}, code={},
    )  # fmt: skip
    (folder / "attempt.json").write_bytes(msgspec.json.encode(order))
    return order


def chain(state: Path, n: int) -> list[int]:
    return [link.n for link in resume_chain(state, CELL, n)]


def test_back_to_the_attempt_that_began_from_scratch(tmp_path: Path) -> None:
    attempt(tmp_path, 1)
    attempt(tmp_path, 2)
    attempt(tmp_path, 3, f"{tmp_path}/attempts/{CELL}/2/out/model_8.pt")
    last = attempt(tmp_path, 4, f"{tmp_path}/attempts/{CELL}/3/out/model_9.pt")
    assert [chain(tmp_path, n) for n in (1, 2, 3, 4)] == [[1], [2], [2, 3], [2, 3, 4]]
    assert [each.n for each in orders_before(last)] == [2, 3]


def test_an_attempt_that_saved_nothing_is_passed_over(tmp_path: Path) -> None:
    attempt(tmp_path, 1)
    attempt(tmp_path, 2, f"{tmp_path}/attempts/{CELL}/1/out/model_8.pt")
    attempt(tmp_path, 3, f"{tmp_path}/attempts/{CELL}/1/out/model_8.pt")
    assert chain(tmp_path, 3) == [1, 3]


def test_in_a_folder_that_all_share_it_is_the_one_before(tmp_path: Path) -> None:
    attempt(tmp_path, 1)
    attempt(tmp_path, 2, "/data/outputs/a/checkpoints/last")
    attempt(tmp_path, 3, "/data/outputs/a/checkpoints/last")
    assert chain(tmp_path, 3) == [1, 2, 3]


def test_what_is_gone_ends_the_chain_and_is_known_to_be_missing(tmp_path: Path) -> None:
    attempt(tmp_path, 2, f"{tmp_path}/attempts/{CELL}/1/out/model_8.pt")
    found = resume_chain(tmp_path, CELL, 2)
    assert [(link.n, link.order is None) for link in found] == [(1, True), (2, False)]
    assert [link.n for link in resume_chain(tmp_path, CELL, 7)] == [7]


@pytest.mark.parametrize("born", ["train/b/0", "train/b/12"])
def test_a_cell_that_was_renamed(tmp_path: Path, born: str) -> None:
    attempt(tmp_path, 1, cell=born)
    attempt(tmp_path, 2, f"{tmp_path}/attempts/{born}/1/out/model_8.pt")
    assert [(link.cell, link.n) for link in resume_chain(tmp_path, CELL, 2)] == [(born, 1), (CELL, 2)]
