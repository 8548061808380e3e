"""Loading of the cluster's state when an active term begins."""

from pathlib import Path

import pytest

from controller_core.model import NO_EPOCH, Broker, Cluster, Move
from controller_core.model.events import PRODUCER_IDS
from controller_core.shell.active import TermEndedError
from controller_core.shell.zookeeper.controller_election import Controllership
from controller_core.shell.zookeeper.loading import create_features, create_parents, load_cluster, read_cluster_id
from controller_core.shell.zookeeper.store import Store
from controller_core.zookeeper_mode.znode_versions import ZnodeVersions
from kafka_zookeeper import paths
from kafka_zookeeper.errors import SessionLostError
from tests.controller_core.shell.scripts import check_script
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeZooKeeper
from tests.controller_core.shell.zookeeper.vocabulary import joined
from tests.twins.unclean_election import allows_unclean

SCRIPTS = sorted((Path(__file__).parent / "golden" / "loading").glob("*.txt"))
CONTROLLERSHIP = Controllership(epoch=9, epoch_version=0, taken_from=-1)


class World:
    """A ZooKeeper to load from.

    znode PATH [DATA]     another process writes a znode    broker N       a broker registers
    parents               create the watched znodes         load           load the cluster and print its state
    """

    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.server.put(paths.CONTROLLER_EPOCH, b"9")
        self.session = self.server.session()

    async def do(self, command: str) -> list[str]:
        """Carry out one command."""
        verb, _, rest = command.partition(" ")
        match verb:
            case "znode":
                path, _, data = rest.partition(" ")
                self.server.put(path, data.encode() if data else None)
                return []
            case "broker":
                endpoint = (
                    f'"endpoints":["INTERNAL://host{rest}:9092"],"listener_security_protocol_map":{{"INTERNAL":"SSL"}}'
                )
                self.server.put(paths.broker(int(rest)), f'{{{endpoint},"jmx_port":-1,"version":5}}'.encode(), owner=5)
                return []
            case "parents":
                await create_parents(Store(self.session, CONTROLLERSHIP.epoch_version))
                return self._told()
            case "load":
                versions = ZnodeVersions()
                cluster = await load_cluster(self.session, versions, 1000, CONTROLLERSHIP, "INTERNAL")
                return [*self._told(), *known(cluster, versions)]
        raise ValueError(f"no such command: {command}")

    def _told(self) -> list[str]:
        lines, self.server.lines = self.server.lines, []
        return lines


def known(cluster: Cluster, versions: ZnodeVersions) -> list[str]:
    """Print a cluster's state, and the versions of the znodes that it was read from."""
    lines = [broker_text(broker) for broker in cluster.brokers.values()]
    columns = cluster.columns
    for topic in cluster.topics.values():
        lines.append(f"topic {topic.name} id {topic.topic_id} version {versions.known(topic.name)}")
        for row in topic.rows.tolist():
            state = f"{columns.leader[row]}/{columns.leader_epoch[row]}/{joined(columns.isr_of(row))} version {columns.partition_epoch[row]}"
            text = "no state" if columns.partition_epoch[row] == NO_EPOCH else state
            move = move_text(cluster.moves[row]) if row in cluster.moves else ""
            lines.append(f"  {columns.partition[row]}={joined(columns.replicas_of(row))} {text}{move}")
    lines += [f"to be deleted: {name}" for name in cluster.deletions]
    lines += [f"unclean leaders allowed: {name}" for name in sorted(cluster.topics) if allows_unclean(cluster, name)]
    return [*lines, f"producer ids to {cluster.last_producer_id} version {versions.known(PRODUCER_IDS)}"]


def broker_text(broker: Broker) -> str:
    """Print a broker."""
    (endpoint,) = broker.endpoints
    where = f"{endpoint.listener} {endpoint.security_protocol} {endpoint.host}:{endpoint.port}"
    return f"broker {broker.id} epoch {broker.epoch} {where}"


def move_text(move: Move) -> str:
    """Print a move."""
    return f", {move.stage.value}: to {joined(move.target)}, adding {joined(move.adding)}, removing {joined(move.removing)}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
async def test_loading_follows_the_script(script: Path) -> None:
    """CONTRIBUTING: conversations are golden scripts."""
    await check_script(script, World().do)


async def test_a_broker_without_the_inter_broker_listener_is_unreachable_from_the_first_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ControllerChannelManager.addNewBroker needs the inter-broker endpoint; the first elections exclude the broker."""
    world = World()
    await world.do("broker 1")
    await world.do("broker 2")

    cluster = await load_cluster(world.session, ZnodeVersions(), 1000, CONTROLLERSHIP, "CLIENTS")

    assert cluster.may_lead() == set()
    assert sorted(cluster.unreachable) == [1, 2]
    assert [record.__dict__["broker"] for record in caplog.records if record.levelname == "ERROR"] == [1, 2]


async def test_a_session_that_is_lost_during_loading_ends_it() -> None:
    """A partially read state is not used."""
    world = World()
    await world.do('znode /brokers/topics/a {"partitions":{"0":[1]}}')
    world.server.before_reads.append((paths.topic("a"), world.session.expire))

    with pytest.raises(SessionLostError):
        await load_cluster(world.session, ZnodeVersions(), 1000, CONTROLLERSHIP, "INTERNAL")


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b'{"version":"1","id":"abc"}', "abc"), (b"garbage", ""), (None, "")],
)
async def test_the_cluster_id_is_read_or_empty(data: bytes | None, expected: str) -> None:
    """The first broker creates /cluster/id; a controller may start before it."""
    world = World()
    assert await read_cluster_id(world.session) == ""
    world.server.put(paths.CLUSTER_ID, data)

    assert await read_cluster_id(world.session) == expected


async def test_missing_features_are_created() -> None:
    """KafkaController.enableFeatureVersioning: enabled and empty, in the JSON of inter.broker.protocol.version 3.9."""
    world = World()
    await create_features(Store(world.session, CONTROLLERSHIP.epoch_version))

    assert world.server.at(paths.FEATURE).data == b'{"features":{},"version":2,"status":1}'
    assert world.server.at(paths.FEATURE).version == 0


async def test_existing_features_are_not_changed() -> None:
    """Not even disabled ones: a controller does not know the brokers' inter.broker.protocol.version."""
    world = World()
    disabled = b'{"features":{},"version":1,"status":0}'
    world.server.put(paths.FEATURE, disabled)
    await create_features(Store(world.session, CONTROLLERSHIP.epoch_version))

    assert (world.server.at(paths.FEATURE).data, world.server.at(paths.FEATURE).version) == (disabled, 0)


async def test_features_are_not_created_under_a_newer_controller() -> None:
    """C5: fenced by /controller_epoch, like every write of a term."""
    world = World()
    world.server.put(paths.CONTROLLER_EPOCH, b"10")
    with pytest.raises(TermEndedError):
        await create_features(Store(world.session, CONTROLLERSHIP.epoch_version))

    assert paths.FEATURE not in world.server.znodes
