"""Writes tools/fixtures: which flags, config names, folders and files the trainers of the templates really have.

    python tools/trainer_facts.py safedreamer=CHECKOUT lerobot=CHECKOUT omnisafe=CHECKOUT
    python tools/trainer_facts.py launchers=here        # with a Python that has accelerate and torch

Sources are read, never executed or imported, but for the launchers, whose parsers are asked. Facts only.
A checkout is a folder with the package's files; the version is read from it, or from its git commit.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "fixtures"


def safedreamer(root: Path) -> dict[str, Any]:
    configs = _yaml(root / "SafeDreamer" / "configs.yaml")
    runs = [f"SafeDreamer/embodied/run/{each}.py" for each in ("train_eval", "eval_only")]
    sources = _text(root, "SafeDreamer/train.py", *runs)
    defaults = dict(_leaves(configs["defaults"]))
    return {
        "source": "PKU-Alignment/SafeDreamer",
        "version": _commit(root),
        "flags": sorted({"configs", *defaults}),
        "configs": sorted(configs),
        "repeat": {name: _repeats(part) for name, part in configs.items() if _repeats(part)},
        "run_steps": {name: _number(part, "run.steps") for name, part in configs.items() if _number(part, "run.steps")},
        "scripts": sorted(set(re.findall(r"args\.script == '(\w+)'", sources))),
        "files": sorted(set(re.findall(r"'([\w.]+\.(?:jsonl|ckpt|yaml))'", sources)) | {"replay/*.npz"}),
        "folder": "{time}_{method}_{task}_{seed}" if "now_time + '_' + str(config.method)" in sources else "?",
        "keys": sorted({f"episode/{key}" for key in re.findall(r"'(score|cost|length)': ", sources)}),
    }


def lerobot(root: Path) -> dict[str, Any]:
    package = root / "src" / "lerobot" if (root / "src").is_dir() else root / "lerobot"
    train = _fields(package / "configs" / "train.py", "TrainPipelineConfig")
    nested = {"wandb": ("configs/default.py", "WandBConfig"), "policy": ("configs/policies.py", "PreTrainedConfig")}
    flags = {"config_path", *train}
    for name, (file, kind) in nested.items():
        flags |= {f"{name}.{each}" for each in _fields(package / file, kind)}
    constants = dict(re.findall(r'^(\w+) = "([\w.]+)"', (package / "utils" / "constants.py").read_text(), re.MULTILINE))
    loop = (package / "scripts" / "lerobot_train.py").read_text()
    return {
        "source": "huggingface/lerobot",
        "version": _version(root),
        "flags": sorted(flags),
        "modules": sorted(f"lerobot.scripts.{each.stem}" for each in (package / "scripts").glob("lerobot_*.py")),
        "files": [
            f"{constants['CHECKPOINTS_DIR']}/{constants['LAST_CHECKPOINT_LINK']}",
            f"{constants['PRETRAINED_MODEL_DIR']}/{_constant(package / 'configs' / 'train.py', 'TRAIN_CONFIG_NAME')}",
        ],
        "keys": sorted({f"train/{key}" for key in re.findall(r'"(\w+)": AverageMeter\(', loop)}),
        "push_to_hub": _default(package / "configs" / "policies.py", "PreTrainedConfig", "push_to_hub"),
    }


def omnisafe(root: Path) -> dict[str, Any]:
    package = root / "omnisafe"
    script = (root / "examples" / "train_policy.py").read_text()
    algorithms = {each.stem: _yaml(each)["defaults"] for each in sorted(package.glob("configs/o*-policy/*.yaml"))}
    logger = (package / "common" / "logger.py").read_text()
    base = (package / "algorithms" / "on_policy" / "base" / "policy_gradient.py").read_text()
    tools = (package / "utils" / "tools.py").read_text()
    return {
        "source": "PKU-Alignment/omnisafe",
        "version": _version(root),
        "flags": sorted(re.findall(r"'--([\w-]+)'", script)),
        "custom": {name: sorted(key.replace(".", ":") for key, _ in _leaves(each)) for name, each in algorithms.items()
                   if name in ("PPO", "PPOLag", "CPO")},
        "algorithms": sorted(algorithms),
        "log_dir": sorted({each["logger_cfgs"]["log_dir"] for each in algorithms.values()}),
        "files": [*re.findall(r"output_fname: str = '([\w.]+)'", logger),
                  *(f"torch_save/{each}" for each in re.findall(r"'torch_save', f'(epoch-)", logger))],
        "run_folder": "seed-" if "f'seed-{str(seed).zfill(3)}-{relpath}'" in logger else "?",
        "keys": sorted(set(re.findall(r"register_key\('([\w/]+)'", base))),
        "dotted_values_are_numbers": "elif '.' in value:\n        value = float(value)" in tools,
    }  # fmt: skip


def launchers(_: Path) -> dict[str, Any]:
    import accelerate  # type: ignore[import-not-found,unused-ignore]
    import torch  # type: ignore[import-not-found,unused-ignore]
    from accelerate.commands.launch import launch_command_parser  # type: ignore[import-not-found,unused-ignore]
    from torch.distributed.run import get_args_parser  # type: ignore[import-not-found,unused-ignore]

    def alone(parser: Any) -> list[str]:
        return sorted({name for action in parser._actions if action.nargs == 0 for name in action.option_strings})

    return {
        "accelerate": {"version": accelerate.__version__, "flags_without_value": alone(launch_command_parser())},
        "torchrun": {"version": torch.__version__, "flags_without_value": alone(get_args_parser())},
    }


def _yaml(path: Path) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(path.read_text())


def _text(root: Path, *names: str) -> str:
    return "\n".join((root / name).read_text() for name in names)


def _leaves(config: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _repeats(part: Mapping[str, Any]) -> dict[str, int]:
    found = {key.split(".")[1]: value for key, value in _leaves(part) if re.fullmatch(r"env\.\w+\.repeat", key)}
    return dict(sorted(found.items()))


def _number(part: Mapping[str, Any], name: str) -> float | None:
    return next((float(value) for key, value in _leaves(part) if key == name), None)


def _class(path: Path, name: str) -> ast.ClassDef:
    found = [each for each in ast.parse(path.read_text()).body if isinstance(each, ast.ClassDef) and each.name == name]
    return found[0]


def _fields(path: Path, name: str) -> list[str]:
    body = _class(path, name).body
    return [each.target.id for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]


def _default(path: Path, name: str, key: str) -> Any:
    for each in _class(path, name).body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id == key:
            return ast.literal_eval(each.value) if each.value else None
    return None


def _constant(path: Path, name: str) -> str:
    found = re.search(rf'^{name} = "([\w.]+)"', path.read_text(), re.MULTILINE)
    return found[1] if found else "?"


def _version(root: Path) -> str:
    """Of an unpacked wheel, of pyproject.toml, or the commit."""
    wheel = next(root.glob("*.dist-info"), None)
    if wheel is not None:
        return wheel.name.removesuffix(".dist-info").split("-")[1]
    project = root / "pyproject.toml"
    found = re.search(r'^version = "([^"]+)"', project.read_text(), re.MULTILINE) if project.is_file() else None
    return found[1] if found else _commit(root)


def _commit(root: Path) -> str:
    marked = root / "COMMIT"  # written by who unpacked an archive
    if marked.is_file():
        return marked.read_text().strip()
    asked = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


WRITERS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "safedreamer": safedreamer, "lerobot": lerobot, "omnisafe": omnisafe, "launchers": launchers,
}  # fmt: skip


def main(words: list[str]) -> int:
    for word in words:
        name, _, place = word.partition("=")
        trainer = name.partition(".")[0]
        if trainer not in WRITERS or not place:
            print(__doc__)
            return 2
        facts = WRITERS[trainer](Path(place))
        (HERE / f"{name}.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
        print(f"wrote {HERE / name}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
