"""A small torch training on the GPU; `mode` says what goes wrong with it."""

import json
import os
import sys
import time
from pathlib import Path

import torch

mode = sys.argv[1]
out = Path(os.environ["MUSTER_OUT"])
(out / "replay").mkdir(parents=True, exist_ok=True)
width = 4096 if mode == "wide" else 512
model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)).cuda()
optimiser = torch.optim.Adam(model.parameters())
held = torch.empty((6 if mode == "wide" else 1) << 28, dtype=torch.uint8, device="cuda")  # memory that tells them apart

log = (out / "metrics.jsonl").open("a", buffering=1)
began = time.monotonic()
step = 0
while time.monotonic() - began < 600:
    for _ in range(20):
        x = torch.randn(256, width, device="cuda")
        loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        step += 1
    if mode != "quiet" or step <= 200:
        log.write(json.dumps({"step": step, "loss": float(loss)}) + "\n")
    (out / "replay" / f"{step:07}.npz").write_bytes(b"chunk")
    if mode == "oom" and step >= 400:
        held = torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    if mode == "spin" and step >= 400:  # a kernel that is busy without end; its host thread waits
        torch.cuda._sleep(1 << 50)
        torch.cuda.synchronize()
    time.sleep(0.05)
