"""What is asked of ZooKeeper when changes are committed, what its answers mean, and what is read again: golden scripts.

Sources: C4, C5, C6; protocol notes, Z11 (every write checks the epoch's version) and Z103.
"""

from pathlib import Path

import pytest

from tests.controller_core.shell.scripts import check_script
from tests.controller_core.shell.zookeeper.world import World

SCRIPTS = sorted((Path(__file__).parent / "golden" / "store").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
async def test_changes_are_committed_as_the_script_says(script: Path) -> None:
    """CONTRIBUTING: conversations are golden scripts."""
    await check_script(script, World().do)
