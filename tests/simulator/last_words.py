"""The end of stderr, as runs leave it: progress, what they survived, and what they died of."""

from __future__ import annotations

from random import Random

_FRAMES = """Traceback (most recent call last):
  File "/home/me/project/train.py", line {a}, in <module>
    main()
  File "/home/me/project/train.py", line {b}, in main
    metrics = agent.update(batch)
  File "/home/me/project/agent.py", line {c}, in update
    {code}
{raised}
"""

_EXCEPTIONS = (
    ("x = batch['obs']", "KeyError: 'obs'"),
    ("out = self.head(z)", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 256x6)"),
    ("cfg.lr = float(lr)", "ValueError: could not convert string to float: 'auto'"),
    ("raise RuntimeError('replay is empty')", "RuntimeError: replay is empty"),
    ("frame = next(stream)", "FileNotFoundError: [Errno 2] No such file or directory: 'data/shard-17.npz'"),
    ("assert len(batch) == 64", "AssertionError"),
)
_CUDA_OOM = (
    (
        "loss.backward()",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
        "139.80 GiB of which 1.20 GiB is free.",
    ),
    (
        "state = step(state, batch)",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "17179869184 bytes.",
    ),
    ("y = net(x)", "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB"),
)
_NOT_FINITE = (
    ("check_finite(loss)", "FloatingPointError: invalid value (nan) encountered in jit(update)"),
    ("raise ValueError(f'loss is {loss}')", "ValueError: loss is nan"),
    ("assert torch.isfinite(loss), 'loss is not finite'", "AssertionError: loss is not finite"),
)
_DISK_FULL = (
    ("file.write(row)", "OSError: [Errno 28] No space left on device"),
    ("np.savez(path, **chunk)", "OSError: [Errno 28] No space left on device: 'replay/chunk-991.npz'"),
    ("torch.save(state, path)", "OSError: [Errno 122] Disk quota exceeded: 'checkpoints/last.ckpt'"),
)
_GPU_LOST = (
    ("loss.item()", "RuntimeError: CUDA error: unspecified launch failure"),
    ("torch.cuda.synchronize()", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
)
_WORKER_KILLED = (
    (
        "batch = next(loader)",
        "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. ",
    ),
)
_BY_KIND = {
    "exception": _EXCEPTIONS,
    "cuda_oom": _CUDA_OOM,
    "non_finite": _NOT_FINITE,
    "disk_full": _DISK_FULL,
    "gpu_lost": _GPU_LOST,
    "worker_killed": _WORKER_KILLED,
}
_AFTER = (
    "",
    "",
    "wandb: You can sync this run to the cloud by running:\nwandb: wandb sync wandb/offline-run-20260101_120000-abc\n",
    "Exception ignored in: <function Env.__del__ at 0x7f0000000000>\n",
)
_SURVIVED = "WARNING CUDA out of memory in evaluation, trying again with half the batch\n"


def progress(rng: Random) -> str:
    """Lines of a run that goes on; some tell of trouble that it survived."""
    step = rng.randrange(1000, 90_000)
    lines = [f"step {step + 10 * row} loss {rng.uniform(0.01, 2):.4f}\n" for row in range(rng.randrange(0, 6))]
    if rng.random() < 0.15:
        lines.insert(0, _SURVIVED)
    if rng.random() < 0.1:
        lines.insert(0, raised("exception", rng))
        lines += [f"step {step + 100 + row} loss 0.5\n" for row in range(3)]
    return "".join(lines)


def raised(kind: str, rng: Random) -> str:
    code, told = rng.choice(_BY_KIND[kind])
    a, b, c = (rng.randrange(10, 900) for _ in range(3))
    return _FRAMES.format(a=a, b=b, c=c, code=code, raised=told)


def death_by(kind: str, rng: Random) -> str:
    return progress(rng) + raised(kind, rng) + rng.choice(_AFTER)


def torchrun_hangup(rng: Random) -> str:
    return progress(rng) + (
        "Traceback (most recent call last):\n"
        '  File "/usr/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
        '  File "/usr/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/api.py", line 83, '
        "in _terminate_process_handler\n"
        '    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)\n'
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 100 got signal: 1\n"
    )
