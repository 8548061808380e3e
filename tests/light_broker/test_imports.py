"""What the light broker loads."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HEAVY = {"numpy", "aiohttp", "kazoo", "kopf", "kubernetes", "controller_core"}
PROGRAM = "import sys, light_broker.shell.process; print(*{name.partition('.')[0] for name in sys.modules})"


def test_the_process_of_the_broker_loads_nothing_heavy() -> None:
    """Numpy and aiohttp alone would take half of the memory that it needs; kazoo is for ZooKeeper mode only (ADR 65)."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert set(done.stdout.split()) & HEAVY == set()
