"""The size of buffers follows the memory limit of the control group."""

from pathlib import Path

import pytest

from controller_core.shell.memory_limit import LEAST_BUFFER_BYTES, buffer_bytes
from kafka_node.memory_limit import memory_limit_bytes

MIB = 1024 * 1024
USUAL = 256 * MIB


def cgroup(folder: Path, files: dict[str, str], own: str = "0::/\n") -> tuple[Path, Path]:
    """Write a file system of control groups, with the process's group in it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="ascii")
    (folder / "own").write_text(own, encoding="ascii")
    return folder, folder / "own"


@pytest.mark.parametrize(
    ("files", "own", "expected"),
    [
        ({"memory.max": "536870912\n"}, "0::/\n", 512 * MIB),
        ({"memory.max": "max\n"}, "0::/\n", None),
        ({"pod/box/memory.max": "max\n", "pod/memory.max": "536870912\n"}, "0::/pod/box\n", 512 * MIB),
        ({"memory.max": "536870912\n"}, "0::/../../outside\n", 512 * MIB),
        ({"memory/memory.limit_in_bytes": "536870912\n"}, "4:memory:/docker/abc\n", 512 * MIB),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, "4:cpu,memory:/\n", None),
        ({"memory/box/memory.limit_in_bytes": "104857600\n"}, "4:cpu,memory:/box\n", 100 * MIB),
        ({"memory.max": "nonsense\n"}, "garbage", None),
        ({}, "", None),
    ],
)
def test_the_lowest_limit_of_the_group_and_its_parents_counts(
    tmp_path: Path, files: dict[str, str], own: str, expected: int | None
) -> None:
    """Version 2 (memory.max) and version 1 (memory.limit_in_bytes), seen from within a container and from outside."""
    assert memory_limit_bytes(*cgroup(tmp_path, files, own)) == expected


def test_no_control_group_is_no_limit(tmp_path: Path) -> None:
    """Another system than Linux."""
    assert memory_limit_bytes(tmp_path / "none", tmp_path / "neither") is None


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("max", USUAL), (str(512 * MIB), 128 * MIB), (str(64 * 1024 * MIB), USUAL), (str(8 * MIB), LEAST_BUFFER_BYTES)],
)
def test_requests_take_a_fourth_of_the_limit(tmp_path: Path, limit: str, expected: int) -> None:
    """Never more than without a limit, and never less than a broker's largest request."""
    assert buffer_bytes(USUAL, *cgroup(tmp_path, {"memory.max": limit})) == expected
