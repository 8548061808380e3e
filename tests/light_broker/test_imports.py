"""Modules that the light broker loads."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HEAVY = {"numpy", "aiohttp", "kazoo", "kopf", "kubernetes", "controller_core"}
PROCESS, ZOOKEEPER = "light_broker.shell.process", "light_broker.control.zookeeper.control"


@pytest.mark.parametrize(("module", "heavy"), [(PROCESS, set()), (ZOOKEEPER, {"kazoo"})])
def test_the_process_of_the_broker_loads_nothing_heavy(module: str, heavy: set[str]) -> None:
    """Numpy and aiohttp alone would take half of the memory that it needs; kazoo is for ZooKeeper mode only (ADR 65)."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert set(done.stdout.split()) & HEAVY == heavy
