"""The controller process through its whole life, over a ZooKeeper in memory and real listeners.

What needs a real ZooKeeper and real brokers is in tests/integration.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from controller_core.model.events import Heal
from controller_core.shell import controller as controller_module
from controller_core.shell import learning as learning_module
from controller_core.shell import lives as lives_module
from controller_core.shell.active import Defaults, TopicDefault
from controller_core.shell.brokers.inquiry import BrokerSettings, InquiryError
from controller_core.shell.identity import IdentityError
from controller_core.shell.process import ControllerProcess
from controller_core.shell.security.brokers import BrokerSecurity
from controller_core.shell.settings import ControllerSettings, Listener
from controller_core.shell.zookeeper import presence as presence_module
from kafka_wire.api import ApiKey
from kafka_wire.net.backoff import Backoff
from kafka_wire.net.client import Connection
from kafka_zookeeper import paths
from kafka_zookeeper.errors import ConnectFailedError
from kafka_zookeeper.formats.brokers import BrokerRegistration, Endpoint, encode_broker
from kafka_zookeeper.formats.configs import encode_config_change
from kafka_zookeeper.formats.controller import ControllerRegistration, controller_id, encode_controller
from tests.controller_core_shell.brokers.fake_broker import FakeBroker
from tests.controller_core_shell.zookeeper.fake_zookeeper import FakeSession, FakeZooKeeper

OWN_ID = 1000
INTERNAL = "INTERNAL"
SETTINGS = ControllerSettings(
    zookeeper="zk:2181",
    controller_id=OWN_ID,
    listeners=(Listener(INTERNAL, "127.0.0.1", 0, "127.0.0.1", 0),),
    inter_broker_listener=INTERNAL,
    metrics_port=0,
)


class Life:
    """A process that runs, and the world it runs in."""

    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.server.put(paths.CONTROLLER_EPOCH, b"7")
        self.sessions: list[FakeSession] = []
        self.connecting: list[Callable[[], Any]] = []
        """What becomes of the next attempts to connect, one each; then all go well."""
        self.told = BrokerSettings(Defaults(3, 2, delete_topic_enable=True), 1000)
        self.process = ControllerProcess(SETTINGS, random=lambda: 0.5)
        self.run: asyncio.Task[None] | None = None

    async def connect(self, _settings: object) -> FakeSession:
        """Stand in for `ZooKeeperSession.connect`."""
        if self.connecting:
            await self.connecting.pop(0)()
        self.sessions.append(self.server.session())
        return self.sessions[-1]

    async def inquire(self, broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        """Stand in for `inquire`."""
        if broker == 9:
            raise InquiryError("broker 9 is silent")
        return self.told

    def start(self, **settings: Any) -> None:
        """Run it."""
        if settings:
            self.process = ControllerProcess(replace(SETTINGS, **settings), random=lambda: 0.5)
        self.run = asyncio.create_task(self.process.run())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let everything run until the condition holds, or the process has ended."""
        assert self.run is not None
        while not condition():
            assert not self.run.done(), f"the process has ended: {self.run}"
            await asyncio.sleep(0.001)

    async def until_active(self) -> None:
        """Wait until it holds the cluster."""
        await self.until(lambda: self.process.active is not None)

    async def end(self) -> None:
        """Tell it to stop, and wait for its end."""
        assert self.run is not None
        self.process.stop()
        await self.run

    def lose_session(self) -> None:
        """End the present session."""
        self.sessions[-1].expire()

    def holder(self) -> int | None:
        """Who holds the cluster."""
        znode = self.server.znodes.get(paths.CONTROLLER)
        return None if znode is None else controller_id(znode.data)

    def broker(self, broker_id: int, port: int = 1) -> FakeSession:
        """Register a broker, one that nobody can connect to unless it has a port; returns its session."""
        session = self.server.session()
        endpoint = Endpoint(INTERNAL, "127.0.0.1", port, "PLAINTEXT")
        data = encode_broker(BrokerRegistration(broker_id, (endpoint,)))
        self.server.put(paths.broker(broker_id), data, session.session_id)
        return session

    def takes(self, who: int) -> FakeSession:
        """Let another process have the place."""
        session = self.server.session()
        epoch = int(self.server.at(paths.CONTROLLER_EPOCH).data or b"0")
        if paths.CONTROLLER in self.server.znodes:
            self.server.drop(paths.CONTROLLER)
        self.server.put(paths.CONTROLLER, encode_controller(ControllerRegistration(who)), session.session_id)
        self.server.put(paths.CONTROLLER_EPOCH, str(epoch + 1).encode())
        return session


@pytest.fixture
async def life(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Life]:
    """A process that is not started yet, and ends with its test; every task and session of it ends, too."""
    life = Life()
    monkeypatch.setattr(lives_module.ZooKeeperSession, "connect", life.connect)
    monkeypatch.setattr(learning_module, "inquire", life.inquire)
    monkeypatch.setattr(lives_module, "PAUSES", Backoff(initial_ms=1, cap_ms=2))
    monkeypatch.setattr(lives_module, "RECONNECT_S", 0.001)
    monkeypatch.setattr(presence_module, "RETRY_S", 0.001)

    async def no_chroot(_settings: object) -> None:
        pass

    monkeypatch.setattr(lives_module, "ensure_chroot", no_chroot)
    yield life
    life.process.stop()
    if life.run is not None:
        await asyncio.gather(life.run, return_exceptions=True)
    await asyncio.sleep(0)
    assert [] == [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert all(session.closed for session in life.sessions)


async def test_it_takes_the_place_and_gives_it_up_when_it_is_stopped(life: Life) -> None:
    """ARCHITECTURE.md: presence, loading, turns; on SIGTERM the session is closed, so that a broker takes over at once."""
    life.start()
    await life.until_active()
    assert OWN_ID == life.holder()
    assert b"8" == life.server.at(paths.CONTROLLER_EPOCH).data

    await life.end()
    assert life.holder() is None
    assert life.process.active is None


async def hangs() -> None:
    """Never come back."""
    await asyncio.Event().wait()


async def fails() -> None:
    """As a session that cannot be had."""
    raise ConnectFailedError("no session with ZooKeeper at zk:2181 after 30000 ms")


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
    assert 1001 == life.holder()


async def test_it_stops_while_it_reads_the_cluster(life: Life) -> None:
    """What is half read is nobody's state; the place is free again."""
    life.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    life.server.before_reads.append((paths.topic("orders"), life.process.stop))
    life.start()
    assert life.run is not None
    await life.run
    assert life.holder() is None


async def test_it_stops_while_it_pauses_after_a_failure(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause of half a minute is nobody's reason to wait for so long."""
    monkeypatch.setattr(lives_module, "PAUSES", Backoff(initial_ms=60_000, cap_ms=60_000))
    life.start()
    for lives in (1, 2):
        await life.until(lambda lives=lives: len(life.sessions) == lives)  # type: ignore[misc]
        life.sessions[-1].expire()
    await life.until(lambda: life.sessions[-1].closed)
    await life.end()
    assert 2 == len(life.sessions)


async def test_without_a_first_session_it_says_so_and_ends(life: Life) -> None:
    """A wrong address is told at once, not tried for ever."""
    life.connecting.append(fails)
    life.start()
    assert life.run is not None
    with pytest.raises(ConnectFailedError, match="zk:2181"):
        await life.run


async def test_a_session_that_is_lost_is_followed_by_another(life: Life, caplog: pytest.LogCaptureFixture) -> None:
    """However long ZooKeeper is away; the epoch grows (C5)."""
    life.start()
    await life.until_active()
    life.connecting += [fails, fails]
    with caplog.at_level(logging.ERROR):
        life.sessions[0].expire()
        await life.until(lambda: len(life.sessions) == 2)
        await life.until_active()

    assert b"9" == life.server.at(paths.CONTROLLER_EPOCH).data
    assert 2 == [record.getMessage() for record in caplog.records].count("no session with ZooKeeper")


async def test_a_session_that_is_lost_while_everything_is_read_is_followed_by_another(life: Life) -> None:
    """The place was taken and never filled."""
    life.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    life.server.before_reads.append((paths.topic("orders"), life.lose_session))
    life.start()
    await life.until_active()
    assert 2 == len(life.sessions)
    assert life.sessions[1].session_id == life.server.at(paths.CONTROLLER).owner


async def test_a_place_that_is_lost_while_everything_is_read_is_stood_by_for(life: Life) -> None:
    """Our fence does not hold: nothing is to be undone, and the process lives on."""
    life.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    life.broker(1)
    life.server.before_reads.append((paths.topic("orders"), lambda: life.takes(1001)))
    life.start()
    await life.until(lambda: any("/brokers/ids/1001" in line for line in life.server.lines))
    assert 1001 == life.holder()
    assert 1 == len(life.sessions)


async def test_a_place_that_is_lost_is_taken_again_when_it_is_free(life: Life) -> None:
    """Within the same session."""
    life.start()
    await life.until_active()
    rival = life.takes(1001)
    await life.until(lambda: life.process.active is None)
    rival.expire()
    await life.until_active()

    assert 1 == len(life.sessions)
    assert OWN_ID == life.holder()


async def test_a_failed_tenure_gives_the_place_up_and_is_followed_by_another(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect ends a tenure and nothing else: for as long as we pause, a broker can stand in."""
    decide = controller_module.decide
    failures = 3

    def decide_or_fail(cluster: Any, event: Any) -> Any:
        nonlocal failures
        if isinstance(event, Heal) and failures:
            failures -= 1
            raise ZeroDivisionError
        return decide(cluster, event)

    monkeypatch.setattr(controller_module, "decide", decide_or_fail)
    life.start()
    await life.until(lambda: failures == 0)
    await life.until(lambda: life.process.active is not None and not life.process.active.has_ended)

    assert 4 == len(life.sessions)
    assert [True, True, True, False] == [session.closed for session in life.sessions]


async def test_an_id_that_a_broker_has_is_refused(life: Life) -> None:
    """Wire-facts, h4; the message says whose it is and what to do."""
    life.broker(OWN_ID)
    life.start()
    assert life.run is not None
    with pytest.raises(IdentityError, match=r"id 1000 is a broker's \(127.0.0.1:1\): choose an id that no broker has"):
        await life.run
    assert life.holder() is None


async def test_an_id_that_a_broker_has_by_the_time_the_place_is_free_is_refused(life: Life) -> None:
    """A standby may wait for months."""
    rival = life.takes(1001)
    life.start()
    await life.until(lambda: any("/brokers/ids/1001" in line for line in life.server.lines))
    life.broker(OWN_ID)
    rival.expire()
    assert life.run is not None
    with pytest.raises(IdentityError):
        await life.run
    assert life.holder() is None


async def test_an_id_that_brokers_may_be_given_is_refused(life: Life) -> None:
    """reserved.broker.max.id: ids above are handed out automatically."""
    life.told = BrokerSettings(Defaults(), 999)
    life.broker(1)
    life.start()
    assert life.run is not None
    with pytest.raises(IdentityError, match=r"1000 is over reserved.broker.max.id 999 of broker 1"):
        await life.run
    assert life.holder() is None


async def test_what_brokers_tell_of_their_settings_outlives_the_tenure(life: Life) -> None:
    """CreateTopics with the cluster's defaults must not mean others just because a tenure is young."""
    life.broker(9)
    life.broker(1)
    life.start()
    await life.until_active()
    assert life.process.active is not None
    assert life.told.defaults == await life.process.active.known_defaults(60_000)
    first = life.told.defaults
    life.told = BrokerSettings(Defaults(7, 7, delete_topic_enable=False), 1000)
    life.sessions[0].expire()
    await life.until(lambda: len(life.sessions) == 2)
    await life.until_active()

    assert life.process.active is not None
    assert await life.process.active.known_defaults(0) in {first, life.told.defaults}


@pytest.mark.parametrize("entity", ["brokers/<default>", "brokers/1", None])
async def test_brokers_are_asked_again_when_they_may_have_other_settings(
    life: Life, monkeypatch: pytest.MonkeyPatch, entity: str | None
) -> None:
    """DynamicBrokerConfig, and a broker that starts anew with another file: a controller that is a broker has them by itself.

    The first answer may come from a broker that has not heard of the change: it is asked once more.
    """
    monkeypatch.setattr(learning_module, "ASKED_AGAIN_AFTER_S", (0.0, 0.0))
    first, then = life.told, BrokerSettings(Defaults(7, 3, topic_defaults={"retention.ms": TopicDefault("7", 3)}), 1000)
    broker = life.broker(1)
    life.start()
    await life.until_active()
    learning = life.process._lives.learning
    await life.until(lambda: learning.defaults == first.defaults)
    answers = [first, then]

    async def changing(_broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(learning_module, "inquire", changing)
    if entity is None:
        broker.expire()
        life.broker(1)
    else:
        life.server.put(f"{paths.CONFIG_CHANGE_PREFIX}0000000001", encode_config_change(entity))
    await life.until(lambda: learning.defaults == then.defaults)

    assert life.process.active is not None
    assert then.defaults == await life.process.active.known_defaults(0)


async def test_callers_wait_while_the_cluster_is_read(life: Life) -> None:
    """Brokers send them here already; NOT_CONTROLLER would send them round in circles."""
    life.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    callers: list[asyncio.Task[None]] = []
    life.server.before_reads.append(
        (paths.topic("orders"), lambda: callers.append(asyncio.create_task(life.process._lives.settling.wait())))
    )
    life.start()
    await life.until(lambda: bool(callers) and callers[0].done())

    assert life.process.active is not None
    await life.process._lives.settling.wait()


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
    assert (INTERNAL, "127.0.0.1") == (endpoint.listener, endpoint.host)


async def test_live_brokers_are_those_of_the_present_tenure(life: Life) -> None:
    """The relay asks for them; a standby has none to relay to."""
    life.broker(1)
    assert () == life.process._live_brokers.on(INTERNAL)
    life.start()
    await life.until_active()

    assert [1] == [broker.broker_id for broker in life.process._live_brokers.on(INTERNAL)]
    assert () == life.process._live_brokers.on("OTHER")
    await life.end()
    assert () == life.process._live_brokers.on(INTERNAL)


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
    assert 0 == made["topics"][0]["error_code"]
    # Everything (nothing yet), then who lives; then the topic: replicas first, then everybody.
    assert [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA] == brokers[0].keys
    assert [ApiKey.UPDATE_METADATA, ApiKey.UPDATE_METADATA] == brokers[2].keys

    sessions[0].expire()
    await brokers[1].until(6)
    state = life.server.at(paths.partition_state("orders", 0)).data or b""
    assert b'"leader":2,"version":1,"leader_epoch":1,"isr":[2]' in state
    who_lives, lead, everybody = brokers[1].taken[3:6]
    kinds = [ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA]
    assert kinds == [who_lives[0], lead[0], everybody[0]]
    assert [2, 3, OWN_ID] == [live["id"] for live in who_lives[1]["live_brokers"]]

    life.broker(1, brokers[0].port)
    deleted = await client.call(
        ApiKey.DELETE_TOPICS, {"topics": [{"name": "orders", "topic_id": UUID(int=0)}], "timeout_ms": 30_000}
    )
    assert 0 == deleted["responses"][0]["error_code"]
    assert [] == [*life.server.children(paths.TOPICS), *life.server.children(paths.DELETE_TOPICS)]
    stops = [body for key, body in brokers[1].taken if key is ApiKey.STOP_REPLICA]
    assert [False, True] == [body["topic_states"][0]["partition_states"][0]["delete_partition"] for body in stops]

    await client.close()
    await life.end()
    for each in brokers:
        await each.close()
