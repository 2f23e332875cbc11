"""The shim at the path of 0.1, for its crontab lines and services."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).resolve().parents[1] / "hosts" / "local" / "shim.py"), run_name="__main__")
