"""Which tests run only with `make test-all`."""

from pathlib import Path

import pytest

# new and long: they join `make test` file by file, once they have been seen green and quick on a clean clone
JOINING = {
    "test_causes.py", "test_clock_faults.py", "test_disk.py", "test_files_faults.py", "test_gpu_faults.py",
    "test_hidden.py", "test_memory.py", "test_stalls.py", "test_story.py", "test_single.py", "test_single_broken.py",
    "test_campaign_broken.py", "test_look.py",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.path).name in JOINING:
            item.add_marker(pytest.mark.slow)
