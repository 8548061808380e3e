"""Loading of a command's modules: no collections of cycles, and only libraries that the command needs."""

import gc
import subprocess
import sys

import pytest

from steward.loading import without_collections

OLDEST = 2
"""Generation that a full collection visits."""

WRONG_COMMAND = """
import gc, sys
sys.argv = ["steward", "broker", "/nowhere/server.properties"]
from steward.__main__ import main
try:
    main()
except SystemExit:
    print({result})
"""

HEAVY = {"aiohttp", "kazoo", "kopf", "kubernetes", "numpy", "pydantic", "rich"}


def test_the_collector_is_paused_while_modules_are_loaded() -> None:
    """A collection of modules finds nothing; the process collects as before when they are loaded."""
    with without_collections():
        assert not gc.isenabled()

    assert gc.isenabled()


def test_a_pause_within_a_pause_does_not_end_it() -> None:
    """A command loads its modules while its caller loads others."""
    with without_collections():
        with without_collections():
            pass

        assert not gc.isenabled()


def test_the_collector_runs_again_after_an_import_that_failed() -> None:
    """A command whose library is missing reports it, in a process that collects."""
    with pytest.raises(ImportError), without_collections():
        raise ImportError("kopf")

    assert gc.isenabled()


def test_a_command_starts_without_a_full_collection() -> None:
    """The entry point and the command pause the collector, and leave it running."""
    assert _printed(f"gc.isenabled(), gc.get_stats()[{OLDEST}]['collections']") == ["True", "0"]


def test_the_command_of_a_light_broker_loads_no_heavy_library() -> None:
    """Each costs memory in every pod: pydantic, which typer loads from 0.29 on, 9 MB of 46."""
    loaded = {name.partition(".")[0] for name in _printed("*sys.modules")}

    assert "light_broker" in loaded
    assert loaded & HEAVY == set()


def _printed(result: str) -> list[str]:
    """Return what a process prints after a command that failed: the words of the Python expression `result`."""
    program = WRONG_COMMAND.format(result=result)
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
