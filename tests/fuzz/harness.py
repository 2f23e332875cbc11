"""Gives hostile inputs to readers, in processes that may die of them, and measures what each input takes.

An input takes too much if it needs more than MOST_MB of memory or MOST_S of processor time over what an honest file of
its size needs. Nothing but a reader's own refusals may get out of it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from mutate import Codec, hostile

MOST_MB, MOST_S = 200, 5.0
KILL_MB, KILL_CPU_S, KILL_WALL_S = 1500, 20, 300  # the process of an input that takes as much is ended
# readers of texts, whose inputs hypothesis chooses, too
GUIDED = (
    "expression",
    "edit",
    "notations",
    "masking",
    "campaign",
    "config.yaml",
    "config.toml",
    "document.md",
    "journal",
    "run.log_words",
)


@dataclass(frozen=True)
class Reader:
    """What is fuzzed: `read` gets the path of a file in a folder of its own that is emptied after it."""

    name: str
    modules: tuple[str, ...]  # of Muster, whose reading this is
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], object]
    refusals: tuple[type[BaseException], ...] = ()
    file: str = "input"
    words: tuple[bytes, ...] = ()
    codec: Codec | None = None
    share: int = 1  # how many inputs it gets while others get one
    most: int = 4 << 20  # bytes of an input
    honest: Callable[[int], bytes] | None = None  # a file of this size, where its seed again and again is none


@dataclass
class Taken:
    """What one input took, or how it failed."""

    reader: str
    number: int
    size: int = 0
    cpu_s: float = 0.0
    mb: float = 0.0
    failure: str = ""

    def line(self) -> str:
        told = f"{self.reader} {self.number}: {self.size} bytes, {self.mb:.0f} MB, {self.cpu_s:.1f} s"
        return f"{told}; {self.failure}" if self.failure else told


@dataclass
class Sum:
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[Taken] = field(default_factory=list)
    worst_s: Taken | None = None
    worst_mb: Taken | None = None
    cpu_s: dict[str, float] = field(default_factory=dict)

    def add(self, taken: Taken) -> None:
        self.counts[taken.reader] = self.counts.get(taken.reader, 0) + 1
        self.cpu_s[taken.reader] = self.cpu_s.get(taken.reader, 0.0) + taken.cpu_s
        if taken.failure:
            self.failures.append(taken)
        if self.worst_s is None or taken.cpu_s > self.worst_s.cpu_s:
            self.worst_s = taken
        if self.worst_mb is None or taken.mb > self.worst_mb.mb:
            self.worst_mb = taken

    @property
    def inputs(self) -> int:
        return sum(self.counts.values())

    def told(self) -> str:
        worst_s, worst_mb = self.worst_s or Taken("", 0), self.worst_mb or Taken("", 0)
        return (
            f"fuzz: {self.inputs} inputs, {len(self.counts)} readers, {len(self.failures)} failures, "
            f"worst {worst_s.cpu_s:.1f} s ({worst_s.reader} {worst_s.number}), "
            f"{worst_mb.mb:.0f} MB ({worst_mb.reader} {worst_mb.number})"
        )


def input_of(reader: Reader, number: int) -> bytes:
    """Always the same one for a name and a number."""
    rng = Random(f"{reader.name}/{number}")
    return hostile(seeds_of(reader), rng, reader.words, reader.codec)[: reader.most]


_SEEDS: dict[str, list[bytes]] = {}


def seeds_of(reader: Reader) -> list[bytes]:
    if reader.name not in _SEEDS:
        _SEEDS[reader.name] = reader.seeds()
    return _SEEDS[reader.name]


def run(
    readers: Sequence[Reader],
    numbers: Callable[[Reader], Sequence[int]],
    jobs: int = 2,
    tell: Callable[[str], object] = lambda _: None,
) -> Sum:
    """All of them. A process that dies is named with its input, and another one goes on behind it."""
    for reader in readers:
        seeds_of(reader)
    gc.collect()
    gc.freeze()
    tasks = [(reader, number) for reader in readers for number in numbers(reader)]
    Random(1).shuffle(tasks)
    total = Sum()
    with _temporary_files_gone():
        lots = [tasks[at::jobs] for at in range(jobs)]
        going = [_begin(lot) for lot in lots if lot]
        while going:
            lot = going.pop(0)
            for taken in lot.results():
                total.add(taken)
                if taken.failure:
                    tell(f"FAILED {taken.line()}")
            if left := lot.left():
                going.append(_begin(left))
    return total


@contextlib.contextmanager
def _temporary_files_gone() -> Iterator[None]:
    """Also those of a process that died."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before


@dataclass
class _Lot:
    tasks: list[tuple[Reader, int]]
    pid: int
    fd: int
    done: int = 0
    died: bool = False

    def results(self) -> Iterator[Taken]:
        with os.fdopen(self.fd, "rb") as pipe:
            for line in pipe:
                self.done += 1
                yield Taken(**json.loads(line))
        _, status = os.waitpid(self.pid, 0)
        if self.done < len(self.tasks):
            reader, number = self.tasks[self.done]
            self.done += 1
            why = _death(status)
            yield Taken(reader.name, number, len(input_of(reader, number)), failure=why)

    def left(self) -> list[tuple[Reader, int]]:
        return self.tasks[self.done :]


def _death(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"its process ended with {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    return {
        signal.SIGPROF: f"it took more than {KILL_CPU_S} s of processor time",
        signal.SIGALRM: f"it did not end in {KILL_WALL_S} s",
    }.get(number, f"its process died of {signal.Signals(number).name}")


def _begin(tasks: list[tuple[Reader, int]]) -> _Lot:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return _Lot(tasks, pid, read_end)
    code = 1
    try:
        os.close(read_end)
        _work(tasks, write_end)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _work(tasks: Sequence[tuple[Reader, int]], pipe: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        limit_memory()
        warnings.simplefilter("error")  # one that a reader lets out stands on a person's terminal
        for reader, number in tasks:
            taken = measured(reader, number, folder)
            os.write(pipe, json.dumps(vars(taken)).encode() + b"\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def limit_memory() -> None:
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    most = now + (KILL_MB << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def measured(reader: Reader, number: int, folder: Path, data: bytes | None = None) -> Taken:
    data = input_of(reader, number) if data is None else data
    taken = read_once(reader, number, folder, data)
    if not taken.failure and (taken.cpu_s > MOST_S or taken.mb > MOST_MB):
        honest = read_once(reader, number, folder, honest_of(reader, len(data)))
        if taken.cpu_s > honest.cpu_s + MOST_S or taken.mb > honest.mb + MOST_MB:
            taken.failure = f"too much: an honest file of its size takes {honest.mb:.0f} MB, {honest.cpu_s:.1f} s"
    return taken


def honest_of(reader: Reader, size: int) -> bytes:
    """Of about this size: the largest honest file, again and again. What holds its own length is read up to there."""
    if reader.honest is not None:
        return reader.honest(size)
    seed = max(seeds_of(reader), key=len)
    return (seed * (size // max(1, len(seed)) + 1))[: max(size, len(seed))]


def read_once(reader: Reader, number: int, folder: Path, data: bytes) -> Taken:
    """Reads it with the clocks on; the alarms end the process if it hangs."""
    taken = Taken(reader.name, number, len(data))
    path = folder / "in" / reader.file
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    os.chdir(path.parent)
    before, began = _now()
    _reset_peak()
    at = _status("VmRSS")
    signal.setitimer(signal.ITIMER_PROF, KILL_CPU_S)
    signal.setitimer(signal.ITIMER_REAL, KILL_WALL_S)
    try:
        reader.read(path)
    except (*reader.refusals, *REFUSALS) as error:
        taken.failure = "" if _said(error) else f"a refusal that says nothing: {error!r}"
    except BaseException as error:
        taken.failure = _told(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    taken.mb = max(0, _status("VmHWM") - at) / 1024
    now, children = _now()
    taken.cpu_s = now - before
    taken.mb = max(taken.mb, (children - began) / 1024)
    os.chdir(folder)
    shutil.rmtree(path.parent, ignore_errors=True)
    return taken


REFUSALS: tuple[type[BaseException], ...] = (OSError,)  # a file that can't be read: what asks for it tells so


def _said(error: BaseException) -> bool:
    try:
        return bool(str(error))
    except Exception:
        return False


def _told(error: BaseException) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "muster" in each.filename]
    at = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    with contextlib.suppress(Exception):
        return f"{type(error).__name__}{at}: {str(error)[:200]}"
    return f"{type(error).__name__}{at}"


def _now() -> tuple[float, int]:
    """Processor time with that of ended children, and the largest of these."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime, ended.ru_maxrss


def _reset_peak() -> None:
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(name + ":")), 0)


def main(words: list[str] | None = None) -> int:
    import argparse

    from registry import READERS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=2000, help="over all readers")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other inputs")
    parser.add_argument(
        "--guided", type=int, default=0, help="how many more hypothesis chooses, over the readers of texts"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--reader", action="append", help="these alone; a part of the name will do")
    parser.add_argument("--number", type=int, help="this input alone, with its traceback")
    parser.add_argument("--keep", type=Path, help="with --number: write the input there")
    asked = parser.parse_args(words)
    readers = [each for each in READERS if not asked.reader or any(part in each.name for part in asked.reader)]
    if asked.number is not None:
        return _again(readers[0], asked.number, asked.keep)
    found = run(
        readers,
        shares(readers, asked.inputs - asked.guided, asked.seed),
        asked.jobs,
        lambda line: print(line, flush=True),
    )
    if asked.guided:
        with _temporary_files_gone():
            _add_guided(found, [each for each in readers if each.name in GUIDED], asked.guided, asked.seed)
    print("; ".join(f"{name} {count}, {found.cpu_s[name]:.1f} s" for name, count in sorted(found.counts.items())))
    print(found.told())
    return 1 if found.failures or found.inputs < asked.inputs else 0


def _keep_last(last: Path, reader: str, seed: int) -> None:
    if last.exists():
        kept = Path(tempfile.gettempdir()).parent / f"fuzz-{reader}-{seed}.input"
        shutil.copyfile(last, kept)
        print(f"its input is kept as {kept}", flush=True)


def _add_guided(total: Sum, readers: Sequence[Reader], inputs: int, seed: int) -> None:
    """In a process for each reader, which an input may end."""
    from guided import LAST, guided

    for reader in readers:
        read_end, write_end = os.pipe()
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.close(read_end)
                limit_memory()
                warnings.simplefilter("error")
                for taken in guided(reader, -(-inputs // len(readers)), seed):
                    os.write(write_end, json.dumps(vars(taken)).encode() + b"\n")
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            for line in pipe:
                total.add(taken := Taken(**json.loads(line)))
                if taken.failure:
                    print(f"FAILED {taken.line()}", flush=True)
        if status := os.waitpid(pid, 0)[1]:
            total.add(Taken(reader.name, seed, failure=f"guided by hypothesis: {_death(status)}"))
            _keep_last(Path(tempfile.gettempdir(), LAST), reader.name, seed)
            print(f"FAILED {total.failures[-1].line()}", flush=True)


def shares(readers: Sequence[Reader], inputs: int, seed: int) -> Callable[[Reader], Sequence[int]]:
    """The numbers of each reader's inputs: at least so many in sum, as its share says."""
    parts = sum(reader.share for reader in readers)

    def numbers(reader: Reader) -> Sequence[int]:
        count = -(-inputs * reader.share // parts)
        return range(1_000_000 * seed, 1_000_000 * seed + count)

    return numbers


def _again(reader: Reader, number: int, keep: Path | None) -> int:
    data = input_of(reader, number)
    print(f"{reader.name} {number}: {len(data)} bytes, {data[:200]!r}")
    if keep:
        keep.write_bytes(data)
    with tempfile.TemporaryDirectory() as folder:
        limit_memory()
        print(measured(reader, number, Path(folder)).line(), flush=True)
        path = Path(folder, "in", reader.file)
        path.parent.mkdir()
        path.write_bytes(data)
        os.chdir(path.parent)
        print(repr(reader.read(path))[:500])
        os.chdir("/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
