"""Replication between brokers over real connections and logs. Source: Kafka's ReplicaFetcherThread, Partition, ReplicaManager."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_log.files.partition_settings import PartitionSettings, broker_log_settings
from kafka_log.format.producers import Origin
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_node.security.listener_settings import ListenerSecurity
from kafka_node.security.listeners import demands_of_listener
from kafka_node.security.settings import SecurityProtocol, TlsFiles
from kafka_wire import ErrorCode
from kafka_wire.net.client import NodeSettings, SaslCredentials
from kafka_wire.records import decode_batches
from lab.peers.authority import Authority
from light_broker.core.fetch_sessions import FetchSessions
from light_broker.core.metadata_view import PartitionView
from light_broker.core.partition import IsrRules
from light_broker.core.replica_fetch import Stage
from light_broker.shell.known_users import CurrentCredentials
from tests.light_broker.hosting import records
from tests.light_broker.replicating import FETCHING, ORDERS, Cluster, Security, replicating, until


def ends(cluster: Cluster) -> dict[int, int]:
    """Return the ends of the logs of all live brokers."""
    return {broker.id: broker.end_offset for broker in cluster.controller.brokers.values()}


def shrunk_to(cluster: Cluster, isr: tuple[int, ...]) -> bool:
    """Let the leader check for followers that lag, and return whether the controller has an ISR."""
    cluster[cluster.controller.state.leader].replicas.shrink_isrs()
    return cluster.controller.state.isr == isr


@pytest.mark.shows("B1")
async def test_followers_have_the_leaders_log_byte_for_byte(tmp_path: Path) -> None:
    """B1: with acks=all all three have the batch when it is acknowledged."""
    async with replicating(tmp_path) as cluster:
        for number in range(20):
            assert await cluster.produce(records(f"a{number}", f"b{number}")) is ErrorCode.NONE
        assert ends(cluster) == {1: 40, 2: 40, 3: 40}
        await cluster.until_equal()

        logs = cluster.logs()
        assert logs[1] != b""
        assert logs[2] == logs[3] == logs[1]


@pytest.mark.shows("B1", "B8")
async def test_a_broker_that_was_killed_catches_up_and_joins_the_isr(tmp_path: Path) -> None:
    """B1, KIP-903: the ISR has it again with the epoch of its new registration."""
    rules = IsrRules(min_insync_replicas=2, max_lag_ms=200)
    async with replicating(tmp_path, rules=rules) as cluster:
        await cluster.produce(records("a"))
        await cluster.stop(3, killed=True)
        waiting = asyncio.create_task(cluster.produce(records("b")))
        await until(lambda: shrunk_to(cluster, (1, 2)))
        assert await waiting is ErrorCode.NONE
        await cluster.start(3)
        await cluster.controller.publish()
        await cluster.until_equal()

        joined = cluster.controller.proposals[-1]
        assert {member.broker_id: member.broker_epoch for member in joined.isr} == {1: 101, 2: 201, 3: 302}
        assert len(set(cluster.logs().values())) == 1


def written(cluster: Cluster, broker_id: int, *values: str) -> None:
    """Append a batch to the log of a broker that leads, without its followers."""
    hosted = cluster[broker_id].replicas.hosted()[ORDERS]
    assert hosted.append(records(*values), 1, Origin.CLIENT).error is ErrorCode.NONE


@pytest.mark.shows("B1", "B2")
async def test_records_that_no_other_leader_has_are_truncated(tmp_path: Path) -> None:
    """KIP-279: the log of the former leader ends like the new one's; what was acknowledged with acks=all stays."""
    async with replicating(tmp_path) as cluster:
        assert await cluster.produce(records("committed")) is ErrorCode.NONE
        await cluster.stop(2)
        await cluster.stop(3)
        written(cluster, 1, "lost", "lost too")
        await cluster.stop(1)
        await cluster.start(2)
        await cluster.start(3)
        await cluster.controller.elect(2, (2, 3))
        assert await cluster.produce(records("kept")) is ErrorCode.NONE
        await cluster.start(1)
        await cluster.controller.publish()
        await cluster.until_equal()

        assert values_of(cluster[1].log_bytes()) == ["committed", "kept"]
        assert len(set(cluster.logs().values())) == 1
        assert [tuple(entry) for entry in cluster[1].replicas.hosted()[ORDERS].log.log.epochs.entries] == [
            (0, 0),
            (1, 1),
        ]


def values_of(log: bytes) -> Sequence[str]:
    """Return the values of records."""
    return [(record.value or b"").decode() for batch in decode_batches(log) for record in batch.records]


@pytest.mark.shows("B1", "B8")
async def test_followers_move_to_the_leader_of_each_epoch(tmp_path: Path) -> None:
    """A fetcher for each leader, and none without partitions. Source: ReplicaFetcherManager."""
    async with replicating(tmp_path) as cluster:
        for leader in (2, 3, 1, 3):
            await cluster.controller.elect(leader)
            assert await cluster.produce(records(f"of {leader}")) is ErrorCode.NONE
        await cluster.until_equal()

        followed = {broker.id: broker.fetchers.followed() for broker in cluster.controller.brokers.values()}
        assert {broker: [leader for leader, _ in of.values()] for broker, of in followed.items()} == {
            1: [3],
            2: [3],
            3: [],
        }
        assert values_of(cluster[1].log_bytes()) == ["of 2", "of 3", "of 1", "of 3"]
        assert len(set(cluster.logs().values())) == 1


async def test_a_leader_that_lacks_committed_records_is_followed(tmp_path: Path) -> None:
    """Unclean election: followers truncate below the high watermark, as in Kafka."""
    async with replicating(tmp_path) as cluster:
        await cluster.produce(records("a"))
        await cluster.stop(3)
        await cluster.controller.elect(1, (1, 2))
        await cluster.produce(records("b", "c"))
        for broker_id in (1, 2):
            await cluster.stop(broker_id)
        await cluster.start(3)
        await cluster.controller.elect(3, (3,))
        await cluster.start(1)
        await cluster.start(2)
        await cluster.controller.publish()
        assert await cluster.produce(records("d")) is ErrorCode.NONE
        await cluster.until_equal()

        assert [values_of(log) for log in cluster.logs().values()] == [["a", "d"]] * 3


async def test_a_follower_without_a_log_begins_where_the_leaders_log_starts(tmp_path: Path) -> None:
    """Within a batch, too. Source: AbstractFetcherThread.fetchOffsetAndTruncate, Partition.appendRecordsToFollowerOrFutureReplica."""
    async with replicating(tmp_path) as cluster:
        await cluster.produce(records("a", "b"))
        await cluster.produce(records("c", "d", "e"))
        await cluster.stop(3)
        shutil.rmtree(tmp_path / "broker-3")
        await cluster.controller.elect(1, (1, 2))
        deleted = await cluster[1].replicas.writes.delete_records({ORDERS: 3}, timeout_ms=20_000)
        assert deleted[ORDERS].error is ErrorCode.NONE
        await cluster.start(3)
        await cluster.controller.publish()
        await cluster.until_equal()

        log = cluster[3].replicas.hosted()[ORDERS].log
        assert (log.start_offset, log.end_offset) == (3, 5)
        assert values_of(cluster[3].log_bytes()) == ["c", "d", "e"]


async def test_deletion_of_records_moves_the_start_of_followers(tmp_path: Path) -> None:
    """DeleteRecords is answered once all live replicas start there (KIP-107)."""
    async with replicating(tmp_path) as cluster:
        await cluster.produce(records("a", "b"))
        await cluster.until_equal()
        results = await cluster[1].replicas.writes.delete_records({ORDERS: 1}, timeout_ms=20_000)

        assert (results[ORDERS].error, results[ORDERS].low_watermark) == (ErrorCode.NONE, 1)
        assert cluster[2].replicas.hosted()[ORDERS].log.start_offset == 1


async def test_producers_and_epochs_go_on_at_the_next_leader(tmp_path: Path) -> None:
    """KIP-98: a batch that the former leader has is a duplicate at the next one, and not appended again."""
    first = records("a", producer_id=7, producer_epoch=0, base_sequence=0)
    second = records("b", producer_id=7, producer_epoch=0, base_sequence=1)
    async with replicating(tmp_path) as cluster:
        assert await cluster.produce(first) is ErrorCode.NONE
        await cluster.controller.elect(2)
        assert await cluster.produce(first) is ErrorCode.NONE
        assert await cluster.produce(second) is ErrorCode.NONE
        await cluster.until_equal()

        assert [values_of(log) for log in cluster.logs().values()] == [["a", "b"]] * 3


async def test_a_follower_of_an_earlier_epoch_waits_for_the_next_one(tmp_path: Path) -> None:
    """FENCED_LEADER_EPOCH: nothing is asked until the control plane has another epoch. Source: AbstractFetcherThread.onPartitionFenced."""
    async with replicating(tmp_path) as cluster:
        await cluster.until_equal()
        await cluster.controller.elect(1, None, 1, 2)
        await until(lambda: cluster[3].fetchers.followed()[ORDERS][1].stage is Stage.FAILED)
        await cluster.controller.publish(3)
        assert await cluster.produce(records("a")) is ErrorCode.NONE
        await cluster.until_equal()

        assert len(set(cluster.logs().values())) == 1


async def test_a_follower_that_knows_the_epoch_first_asks_again(tmp_path: Path) -> None:
    """UNKNOWN_LEADER_EPOCH and NOT_LEADER_OR_FOLLOWER: the leader gets its state later than the follower."""
    async with replicating(tmp_path) as cluster:
        await cluster.until_equal()
        await cluster.controller.elect(2, None, 3)
        await until(lambda: cluster[3].fetchers.followed()[ORDERS][1].retry_at_ms > 0)
        await cluster.controller.publish()
        assert await cluster.produce(records("a")) is ErrorCode.NONE
        await cluster.until_equal()

        assert len(set(cluster.logs().values())) == 1


async def test_a_restarted_leader_is_found_at_its_next_address(tmp_path: Path) -> None:
    """The fetcher reads the address from the metadata before each request."""
    async with replicating(tmp_path) as cluster:
        await cluster.produce(records("a"))
        await cluster.stop(1)
        await cluster.start(1)
        await cluster.controller.elect(1)
        assert await cluster.produce(records("b")) is ErrorCode.NONE
        await cluster.until_equal()

        assert [values_of(log) for log in cluster.logs().values()] == [["a", "b"]] * 3


async def test_a_topic_without_an_id_is_replicated_by_its_name(tmp_path: Path) -> None:
    """Fetch 12: topics of ZooKeeper mode from before ids existed."""
    async with replicating(tmp_path, brokers=(1, 2), topic_id=NO_TOPIC_ID) as cluster:
        assert await cluster.produce(records("a")) is ErrorCode.NONE
        await cluster.until_equal()

        assert len(set(cluster.logs().values())) == 1


async def test_a_follower_keeps_one_fetch_session_and_begins_another_when_the_leader_has_lost_it(
    tmp_path: Path,
) -> None:
    """KIP-227: the leader answers FETCH_SESSION_ID_NOT_FOUND, and a full request follows at once."""
    async with replicating(tmp_path, brokers=(1, 2)) as cluster:
        leader = cluster[1].broker
        for number in range(5):
            assert await cluster.produce(records(f"a{number}")) is ErrorCode.NONE
        kept, leader.fetch_sessions = leader.fetch_sessions, FetchSessions()
        for number in range(5):
            assert await cluster.produce(records(f"b{number}")) is ErrorCode.NONE
        await cluster.until_equal()

        sessions = [(len(fetches), fetches.partition_count) for fetches in (kept, leader.fetch_sessions)]
        assert sessions == [(1, 1), (1, 1)]
        assert len(set(cluster.logs().values())) == 1


async def test_small_responses_replicate_all_segments(tmp_path: Path) -> None:
    """A response has at least one whole batch (KIP-74); segments roll on followers too."""
    fetching = replace(FETCHING, partition_max_bytes=1, response_max_bytes=1)
    small = PartitionSettings(log=replace(broker_log_settings(), segment_bytes=300))
    async with replicating(tmp_path, fetching=fetching, log_settings=small) as cluster:
        for number in range(30):
            await cluster.produce(records(f"value {number}"), acks=1)
        await cluster.until_equal()

        assert len(set(cluster.logs().values())) == 1
        assert len(cluster[2].replicas.hosted()[ORDERS].log.log.segments) > 1


async def test_a_broker_that_is_no_replica_gets_nothing(tmp_path: Path) -> None:
    """A replica that the leader does not know: UNKNOWN_LEADER_EPOCH. Source: Partition.updateFollowerFetchState."""
    async with replicating(tmp_path, state=PartitionView((1, 2), (1, 2), 1, 0, 0)) as cluster:
        assert await cluster.produce(records("a")) is ErrorCode.NONE
        await until(lambda: cluster[3].fetchers.followed()[ORDERS][1].retry_at_ms > 0)

        assert cluster[3].end_offset == 0


@pytest.mark.shows("B1")
async def test_acks_all_is_refused_without_enough_replicas(tmp_path: Path) -> None:
    """NOT_ENOUGH_REPLICAS once followers have left the ISR; acks=1 is still served (min.insync.replicas)."""
    async with replicating(tmp_path, rules=IsrRules(min_insync_replicas=2, max_lag_ms=200)) as cluster:
        await cluster.produce(records("a"))
        await cluster.until_equal()
        await cluster.stop(2)
        await cluster.stop(3)
        assert await cluster.produce(records("b"), acks=1) is ErrorCode.NONE
        await until(lambda: shrunk_to(cluster, (1,)))

        assert await cluster.produce(records("c")) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert cluster[1].replicas.high_watermark(ORDERS) == 1


async def test_followers_log_in_on_a_listener_with_tls_and_sasl(authority: Authority, tmp_path: Path) -> None:
    """SASL_SSL between brokers (inter.broker.listener.name)."""
    certificate, key = authority.sign("broker", "/CN=broker")
    listener = ListenerSecurity(
        tls=TlsFiles(certificate=certificate, key=key), sasl_mechanisms=("PLAIN",), plain_users={"broker": "secret"}
    )
    demands = demands_of_listener(listener, SecurityProtocol.SASL_SSL, CurrentCredentials())
    login = NodeSettings(
        client_id="test",
        ssl=authority.client_context(),
        sasl=SaslCredentials("PLAIN", "broker", "secret"),
    )
    security = Security(login, demands.tls, demands.sasl)
    async with replicating(tmp_path, brokers=(1, 2), security=security) as cluster:
        assert await cluster.produce(records("a")) is ErrorCode.NONE
        await cluster.until_equal()

        assert len(set(cluster.logs().values())) == 1
