"""Periods that the run's own config declares."""

import json
import time
from pathlib import Path

import pytest

from muster.readers.discovery.run_arguments import declared_periods

YAML = """\
task: safety_point
run: {steps: 1e6, log_every: 300, save_every: 1e4, eval_every: 0}
logger:
  flush_interval: 15.5
  name_interval: soon
  on_every: true
log_freq: "200"
every: 7
"""


def test_yaml(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(YAML)
    assert declared_periods(str(tmp_path)) == (
        ("run.log_every", 300.0),
        ("run.save_every", 10_000.0),
        ("logger.flush_interval", 15.5),
        ("log_freq", 200.0),
    )


def test_json_and_toml(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"train": {"save_freq": 20_000}, "eval_period": 3, "x": [{"a_every": 5}]})
    )
    (tmp_path / "run.toml").write_text("[log]\nprint-every = 50\n")
    assert declared_periods(str(tmp_path)) == (
        ("train.save_freq", 20_000.0),
        ("eval_period", 3.0),
        ("log.print-every", 50.0),
    )


def test_the_command_goes_first(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("run: {log_every: 1, save_every: 2}\n")
    argv = (
        "python",
        "x.py",
        "--run.log_every",
        "1000",
        "--eval-freq=50",
        "trainer.save_interval=7",
        "--log_every",
        "--x_every",
    )
    assert declared_periods(str(tmp_path), argv) == (
        ("run.log_every", 1000.0),
        ("eval-freq", 50.0),
        ("trainer.save_interval", 7.0),
        ("run.save_every", 2.0),
    )
    assert declared_periods(None, ("sh", "-c", "python x.py --log_every 30 > log")) == (("log_every", 30.0),)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", "!!python/object:argparse.Namespace\nlog_every: 300\nother: [\n"),
        ("config.json", '{\n  "log_every": 300,\n  "cut": '),
        ("config.toml", "log_every = 300\ncut = "),
        ("args.yml", "log_every: 300 # seconds\n" + "x: y\n" * 20_000),
    ],
)
def test_what_no_parser_takes_is_searched_by_lines(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    began = time.perf_counter()
    assert declared_periods(str(tmp_path)) == (("log_every", 300.0),)
    assert time.perf_counter() - began < 1.0


def test_it_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text(json.dumps({"log_every": 5, "pad": "x" * (1 << 20)}))
    assert declared_periods(str(tmp_path)) == ()
    for n in range(30):
        (tmp_path / f"{n:02d}.json").write_text(json.dumps({f"a{n}_every": 5, f"b{n}_every": 5, f"c{n}_every": 5}))
    found = declared_periods(str(tmp_path))
    assert len(found) == 50
    assert found[0] == ("a0_every", 5.0)


def test_yaml_that_refers_to_itself(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: &a {log_every: 5, b: *a}\n")
    bomb = "x0: &x0 {log_every: 6}\n" + "".join(
        f"x{n}: &x{n} {{p: *x{n - 1}, q: *x{n - 1}, r: *x{n - 1}, s: *x{n - 1}}}\n" for n in range(1, 30)
    )
    (tmp_path / "b.yaml").write_text(bomb)
    began = time.perf_counter()
    assert dict(declared_periods(str(tmp_path)))["a.log_every"] == 5
    assert time.perf_counter() - began < 5.0


@pytest.mark.parametrize(
    "data", [b"", b"\0\0every", b"\xff\xfe_every: 5", b"- log_every\n- 5\n", b"5\nevery", b"[[[[every"]
)
def test_never_raises(tmp_path: Path, data: bytes) -> None:
    for name in ("a.yaml", "b.json", "c.toml"):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "link.json").symlink_to("nowhere")
    declared_periods(str(tmp_path))
    assert declared_periods(str(tmp_path / "none")) == declared_periods(str(tmp_path / "a.yaml")) == ()
