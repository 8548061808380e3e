"""Operations of each change, byte by byte: the scripts are the specification.

Sources: kafka.zk.ZkData, AdminZkClient.createTopic, KafkaZkClient.updateLeaderAndIsr.
"""

from pathlib import Path

import pytest

from controller_core.model import Cluster
from controller_core.shell.zookeeper.operations import groups_of, parents_of
from controller_core.zookeeper_mode.transitions import apply
from controller_core.zookeeper_mode.znode_versions import ZnodeVersions
from tests.controller_core.shell.scripts import check_script
from tests.controller_core.shell.zookeeper.fake_zookeeper import operation_text
from tests.controller_core.shell.zookeeper.vocabulary import change_text, read_change, read_versions

SCRIPTS = sorted((Path(__file__).parent / "golden" / "operations").glob("*.txt"))
CONTROLLER = 1000
CONTROLLER_EPOCH = 9


class World:
    """A cluster in memory.

    given CHANGE               apply a change
    write CHANGE               print its operations
    found PATH; write CHANGE   print its operations if a znode exists already
    """

    def __init__(self) -> None:
        self.cluster = Cluster(CONTROLLER, CONTROLLER_EPOCH)
        self.versions = ZnodeVersions()

    async def do(self, command: str) -> list[str]:
        """Carry out one command."""
        *found, command = command.split("; ")
        present = {word.removeprefix("found ") for word in found}
        word, _, rest = command.partition(" ")
        change = read_change(self.cluster, rest)
        expected = self.versions.expected(change, read_versions(rest))
        if word == "given":
            apply(self.cluster, change)
            self.versions.note(change, expected)
            return []
        assert word == "write"
        lines = [f"parent {path}" for path in parents_of(self.cluster, change)]
        for group in groups_of(self.cluster, change, expected, present):
            of = f"topic {group.topic}" if group.topic else f"row {group.row}" if group.row >= 0 else "neither"
            lines += [f"group of {of}", *(f"  {operation_text(operation)}" for operation in group.operations)]
        assert change_text(self.cluster, change, expected)
        return lines


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
async def test_operations_follow_the_script(script: Path) -> None:
    """CONTRIBUTING: conversations are golden scripts."""
    await check_script(script, World().do)
