"""The controller process through its whole life, over a ZooKeeper in memory and real listeners.

What needs a real ZooKeeper and real brokers is in tests/integration.
"""

import asyncio
from uuid import UUID

import pytest

from controller_core.shell.settings import Listener
from kafka_wire.api import ApiKey
from kafka_wire.net.client import Connection
from kafka_zookeeper import paths
from tests.controller_core.shell.brokers.fake_broker import FakeBroker
from tests.controller_core.shell.process_life import INTERNAL, OWN_ID, Life, hangs


async def test_it_takes_the_place_and_gives_it_up_when_it_is_stopped(life: Life) -> None:
    """ARCHITECTURE.md: presence, loading, turns; on SIGTERM the session is closed, so that a broker takes over at once."""
    life.start()
    await life.until_active()
    assert life.holder() == OWN_ID
    assert life.server.at(paths.CONTROLLER_EPOCH).data == b"8"

    await life.end()
    assert life.holder() is None
    assert life.process.active is None


async def test_it_stops_while_it_connects(life: Life) -> None:
    """SIGTERM is not made to wait for a ZooKeeper that does not answer."""
    life.connecting.append(hangs)
    life.start()
    await life.until(lambda: not life.connecting)
    await life.end()


async def test_it_stops_while_it_stands_by(life: Life) -> None:
    """And leaves the other alone."""
    life.takes(1001)
    life.start()
    await life.until(lambda: any("/brokers/ids/1001" in line for line in life.server.lines))
    await life.end()
    assert life.holder() == 1001


async def test_it_stops_while_it_reads_the_cluster(life: Life) -> None:
    """What is half read is nobody's state; the place is free again."""
    life.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    life.server.before_reads.append((paths.topic("orders"), life.process.stop))
    life.start()
    assert life.run is not None
    await life.run
    assert life.holder() is None


async def test_a_port_that_is_taken_is_told_and_the_others_are_given_back(life: Life) -> None:
    """OSError names the address; nothing is left listening."""
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    first = Listener("CLIENT", "127.0.0.1", 0, "127.0.0.1", 0)
    second = Listener(INTERNAL, "127.0.0.1", port, "127.0.0.1", port)
    life.start(listeners=(first, second))
    assert life.run is not None
    with pytest.raises(OSError, match=str(port)):
        await life.run

    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await asyncio.open_connection("127.0.0.1", life.process._fronts["CLIENT"].port)
    taken.close()
    await taken.wait_closed()


async def test_a_metrics_port_that_is_taken_is_told(life: Life) -> None:
    """The same for the probes."""
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    life.start(metrics_port=port)
    assert life.run is not None
    with pytest.raises(OSError, match=str(port)):
        await life.run
    taken.close()
    await taken.wait_closed()


async def test_the_port_that_any_became_is_advertised(life: Life) -> None:
    """Port 0 means any."""
    life.start()
    await life.until_active()
    assert life.process.active is not None
    (endpoint,) = life.process.active.advertised()

    assert life.process._fronts[INTERNAL].port == endpoint.port
    assert (endpoint.listener, endpoint.host) == (INTERNAL, "127.0.0.1")


async def test_live_brokers_are_those_that_are_registered(life: Life) -> None:
    """The relay asks for them; before registrations are read there are none, and after the last session the last known stay."""
    life.broker(1)
    assert life.process._live_brokers.on(INTERNAL) == ()
    life.start()
    await life.until_active()

    assert [broker.broker_id for broker in life.process._live_brokers.on(INTERNAL)] == [1]
    assert life.process._live_brokers.on("OTHER") == ()
    await life.end()
    assert [broker.broker_id for broker in life.process._live_brokers.on(INTERNAL)] == [1]


async def test_from_a_client_to_znodes_and_brokers_and_back(life: Life) -> None:
    """All parts together: a topic is made, its leader dies, the topic is deleted; each in the order that brokers rely on."""
    brokers = [await FakeBroker().start() for _ in range(3)]
    sessions = [life.broker(number + 1, each.port) for number, each in enumerate(brokers)]
    life.start()
    await life.until_active()
    client = await Connection.open("127.0.0.1", life.process._fronts[INTERNAL].port, client_id="a client")

    assignments = [{"partition_index": 0, "broker_ids": [1, 2]}]
    topic = {"name": "orders", "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
    made = await client.call(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 30_000})
    assert made["topics"][0]["error_code"] == 0
    # Everything (nothing yet), then who lives; then the topic: replicas first, then everybody.
    assert brokers[0].keys == [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA]
    assert brokers[2].keys == [ApiKey.UPDATE_METADATA, ApiKey.UPDATE_METADATA]

    sessions[0].expire()
    await brokers[1].until(6)
    state = life.server.at(paths.partition_state("orders", 0)).data or b""
    assert b'"leader":2,"version":1,"leader_epoch":1,"isr":[2]' in state
    who_lives, lead, everybody = brokers[1].taken[3:6]
    kinds = [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA]
    assert kinds == [who_lives[0], lead[0], everybody[0]]
    assert [live["id"] for live in who_lives[1]["live_brokers"]] == [2, 3, OWN_ID]

    life.broker(1, brokers[0].port)
    deleted = await client.call(
        ApiKey.DELETE_TOPICS, {"topics": [{"name": "orders", "topic_id": UUID(int=0)}], "timeout_ms": 30_000}
    )
    assert deleted["responses"][0]["error_code"] == 0
    assert [*life.server.children(paths.TOPICS), *life.server.children(paths.DELETE_TOPICS)] == []
    stops = [body for key, body in brokers[1].taken if key is ApiKey.STOP_REPLICA]
    assert [body["topic_states"][0]["partition_states"][0]["delete_partition"] for body in stops] == [False, True]

    await client.close()
    await life.end()
    for each in brokers:
        await each.close()
