"""Loading of a command's modules without collections of cycles."""

import gc
import subprocess
import sys

import pytest

from steward.loading import without_collections

OLDEST = 2
"""Generation that a full collection visits."""

WRONG_COMMAND = f"""
import gc, sys
sys.argv = ["steward", "broker", "/nowhere/server.properties"]
from steward.__main__ import main
try:
    main()
except SystemExit:
    print(gc.isenabled(), gc.get_stats()[{OLDEST}]["collections"])
"""


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
    done = subprocess.run([sys.executable, "-c", WRONG_COMMAND], check=True, capture_output=True, text=True)

    assert done.stdout.split() == ["True", "0"]
