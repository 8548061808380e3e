"""Golden scripts of the store: transactions of committed changes, their outcomes, and re-reading.

Sources: C4, C5, C6; protocol notes, Z11 (every write checks the epoch's version) and Z103.
"""

from pathlib import Path

import pytest

from tests.controller_core.shell.scripts import check_script
from tests.controller_core.shell.zookeeper.world import World

SCRIPTS = sorted((Path(__file__).parent / "golden" / "store").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
async def test_the_store_follows_the_script(script: Path) -> None:
    """CONTRIBUTING: conversations are golden scripts."""
    await check_script(script, World().do)
