"""The controller process from start to stop, over an in-memory ZooKeeper and real listeners.

Tests with a real ZooKeeper and real brokers are in tests/integration.
"""

import asyncio
from uuid import UUID

import pytest

from controller_core.shell.settings import Listener
from kafka_wire import ApiKey
from kafka_wire.net.client import Connection
from kafka_zookeeper import paths
from tests.controller_core.shell.brokers.fake_broker import FakeBroker
from tests.controller_core.shell.running_process import INTERNAL, OWN_ID, RunningProcess, hangs


async def test_it_acquires_controllership_and_releases_it_when_it_stops(running: RunningProcess) -> None:
    """ARCHITECTURE.md: controller election, loading, events; on SIGTERM the session is closed, so that a broker takes over at once."""
    running.start()
    await running.until_active()
    assert running.active_controller() == OWN_ID
    assert running.server.at(paths.CONTROLLER_EPOCH).data == b"8"

    await running.end()
    assert running.active_controller() is None
    assert running.process.active is None


async def test_it_stops_while_it_connects(running: RunningProcess) -> None:
    """SIGTERM does not wait for a ZooKeeper that does not answer."""
    running.connecting.append(hangs)
    running.start()
    await running.until(lambda: not running.connecting)
    await running.end()


async def test_it_stops_while_it_is_a_standby(running: RunningProcess) -> None:
    """The active controller stays active."""
    running.elect(1001)
    running.start()
    await running.until(lambda: any("/brokers/ids/1001" in line for line in running.server.lines))
    await running.end()
    assert running.active_controller() == 1001


async def test_it_stops_while_it_loads_the_cluster(running: RunningProcess) -> None:
    """Nothing of a partial state is used, and /controller is deleted."""
    running.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    running.server.before_reads.append((paths.topic("orders"), running.process.stop))
    running.start()
    assert running.run is not None
    await running.run
    assert running.active_controller() is None


async def test_a_port_in_use_ends_the_process_and_closes_the_other_ports(running: RunningProcess) -> None:
    """OSError names the address; nothing is left listening."""
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    first = Listener("CLIENT", "127.0.0.1", 0, "127.0.0.1", 0)
    second = Listener(INTERNAL, "127.0.0.1", port, "127.0.0.1", port)
    running.start(listeners=(first, second))
    assert running.run is not None
    with pytest.raises(OSError, match=str(port)):
        await running.run

    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await asyncio.open_connection("127.0.0.1", running.process._fronts["CLIENT"].port)
    taken.close()
    await taken.wait_closed()


async def test_a_metrics_port_in_use_ends_the_process(running: RunningProcess) -> None:
    """The same for the probes."""
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    running.start(metrics_port=port)
    assert running.run is not None
    with pytest.raises(OSError, match=str(port)):
        await running.run
    taken.close()
    await taken.wait_closed()


async def test_the_bound_port_is_advertised(running: RunningProcess) -> None:
    """Port 0 means any."""
    running.start()
    await running.until_active()
    assert running.process.active is not None
    (endpoint,) = running.process.active.advertised()

    assert running.process._fronts[INTERNAL].port == endpoint.port
    assert (endpoint.listener, endpoint.host) == (INTERNAL, "127.0.0.1")


async def test_live_brokers_are_the_registered_brokers(running: RunningProcess) -> None:
    """There are none before registrations are read; after the last session the last known brokers stay."""
    running.broker(1)
    assert running.process._live_brokers.on(INTERNAL) == ()
    running.start()
    await running.until_active()

    assert [broker.broker_id for broker in running.process._live_brokers.on(INTERNAL)] == [1]
    assert running.process._live_brokers.on("OTHER") == ()
    await running.end()
    assert [broker.broker_id for broker in running.process._live_brokers.on(INTERNAL)] == [1]


async def test_from_a_client_to_znodes_and_brokers_and_back(running: RunningProcess) -> None:
    """All parts together: a topic is created, its leader fails, the topic is deleted; requests in the order that brokers rely on."""
    brokers = [await FakeBroker().start() for _ in range(3)]
    sessions = [running.broker(number + 1, listener.port) for number, listener in enumerate(brokers)]
    running.start()
    await running.until_active()
    client = await Connection.open("127.0.0.1", running.process._fronts[INTERNAL].port, client_id="a client")

    assignments = [{"partition_index": 0, "broker_ids": [1, 2]}]
    topic = {"name": "orders", "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
    made = await client.call(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 30_000})
    assert made["topics"][0]["error_code"] == 0
    # The full state (empty), then the live brokers; then the topic: first its replicas, then all brokers.
    assert brokers[0].keys == [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA]
    assert brokers[2].keys == [ApiKey.UPDATE_METADATA, ApiKey.UPDATE_METADATA]

    sessions[0].expire()
    await brokers[1].until(6)
    state = running.server.at(paths.partition_state("orders", 0)).data or b""
    assert b'"leader":2,"version":1,"leader_epoch":1,"isr":[2]' in state
    live_brokers, lead, all_brokers = brokers[1].taken[3:6]
    kinds = [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA]
    assert kinds == [live_brokers[0], lead[0], all_brokers[0]]
    assert [live["id"] for live in live_brokers[1]["live_brokers"]] == [2, 3, OWN_ID]

    running.broker(1, brokers[0].port)
    deleted = await client.call(
        ApiKey.DELETE_TOPICS, {"topics": [{"name": "orders", "topic_id": UUID(int=0)}], "timeout_ms": 30_000}
    )
    assert deleted["responses"][0]["error_code"] == 0
    assert [*running.server.children(paths.TOPICS), *running.server.children(paths.DELETE_TOPICS)] == []
    stops = [body for key, body in brokers[1].taken if key is ApiKey.STOP_REPLICA]
    assert [body["topic_states"][0]["partition_states"][0]["delete_partition"] for body in stops] == [False, True]

    await client.close()
    await running.end()
    for broker in brokers:
        await broker.close()
