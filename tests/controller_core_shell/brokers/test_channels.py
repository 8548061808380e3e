"""Channels to brokers that are real sockets: order, resending, lives, and what is told anew.

Sources: C12, C13; wire-facts, gotchas 5 to 7; ControllerChannelManager.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from controller_core.cluster.transition import apply
from controller_core.model.broker import Broker, Endpoint
from controller_core.model.changes import BrokersObserved, ReplicasObserved
from controller_core.model.cluster import Cluster
from controller_core.model.events import ReplicasAnswered, ReplicasRefused, StopReplicaAnswered
from controller_core.model.ids import TopicPartition
from controller_core.model.sends import Send, SendStopReplica
from controller_core.shell.active import Defaults
from controller_core.shell.brokers import channel as channel_module
from controller_core.shell.brokers import channels as channels_module
from controller_core.shell.brokers import inquiry as inquiry_module
from controller_core.shell.brokers.channels import Channels
from controller_core.shell.brokers.inquiry import BrokerSettings, InquiryError, inquire
from controller_core.shell.brokers.refusals import Retry
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.backoff import Backoff
from tests.controller_core_shell.brokers.clusters import OWN, broker, cluster_of, lead, metadata
from tests.controller_core_shell.brokers.fake_broker import FakeBroker, hang, hang_up, refuse_once
from tests.controller_core_shell.zookeeper.vocabulary import read_change

ORDERS = ("topic orders id=7 0=1,2 1=2,1", "known orders-0=1/4/1,2/6 orders-1=2/0/2,1/0")
LEAD, META, STOP = ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA
PATIENCE_MS = 60_000


class World:
    """Brokers 1 and 2 of a cluster, and the channels to them."""

    def __init__(self, *brokers: FakeBroker) -> None:
        self.brokers = brokers
        self.cluster: Cluster = cluster_of(*self.registered(), changes=ORDERS)
        self.answers: list[Any] = []
        self.deposed = 0
        self.retries: list[Retry] = []
        self.channels = Channels(
            self.cluster, OWN, answered=self.answers.append, refused=self.retries.append, deposed=self._depose
        )
        self.channels.follow()

    def registered(self, **changed: int) -> list[Broker]:
        """The brokers as they are registered, the first one with something changed."""
        found = [broker(number + 1, port=each.port) for number, each in enumerate(self.brokers)]
        return [
            broker(1, port=changed.get("port", found[0].endpoints[1].port), epoch=changed.get("epoch", 0)),
            *found[1:],
        ]

    def observe(self, brokers: list[Broker]) -> None:
        """Let these be registered."""
        apply(self.cluster, BrokersObserved(tuple(brokers)))
        self.channels.follow()

    def send(self, *sends: Send) -> None:
        """Send these."""
        self.channels.send(sends)

    def _depose(self) -> None:
        self.deposed += 1


Start = Callable[[], Awaitable[FakeBroker]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start fake brokers; they die with their test."""
    brokers: list[FakeBroker] = []

    async def started() -> FakeBroker:
        brokers.append(await FakeBroker().start())
        return brokers[-1]

    yield started
    for each in brokers:
        await each.close()


@pytest.fixture
async def world(start: Start, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Two brokers and the channels to them; every test leaves no task behind."""
    monkeypatch.setattr(channel_module, "PAUSE_S", 0.001)
    monkeypatch.setattr(channel_module, "REFUSAL_PAUSES", Backoff(initial_ms=1, cap_ms=1))
    world = World(await start(), await start())
    yield world
    await world.channels.close()
    for each in world.brokers:
        await each.close()
    await asyncio.sleep(0)
    assert [] == [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def stop(to: int, *partitions: int, delete: bool = True) -> SendStopReplica:
    """Stop partitions of orders."""
    return SendStopReplica(
        to, tuple(TopicPartition("orders", one) for one in partitions), (-2,) * len(partitions), delete
    )


async def test_requests_come_in_the_order_they_were_sent(world: World) -> None:
    """C13: brokers rely on it (a StopReplica after the LeaderAndIsr that took a partition away)."""
    first, second = world.brokers
    world.send(
        metadata(world.cluster), lead(world.cluster, 1), stop(1, 0), lead(world.cluster, 2), metadata(world.cluster)
    )

    assert await world.channels.idle(PATIENCE_MS)
    assert [META, LEAD, STOP, META] == first.keys
    assert [META, LEAD, META] == second.keys
    assert {LEAD: 7, META: 8, STOP: 4} == first.versions


@pytest.mark.parametrize(("highest", "told"), [(5, False), (6, True), (7, True)])
async def test_a_broker_hears_that_a_leader_recovers_where_its_version_says_such(
    world: World, highest: int, told: bool
) -> None:
    """KIP-704 came with version 6; one of ibp 2.8 is told all the rest."""
    first, _ = world.brokers
    first.ranges[LEAD] = (0, highest)
    world.cluster.columns.recovering[:] = True
    world.send(lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    ((_, body),) = first.taken
    states = [state for topic in body["topic_states"] for state in topic["partition_states"]]
    assert [1 if told else 0] * len(states) == [state["leader_recovery_state"] for state in states]


async def test_every_request_carries_the_epoch_of_the_broker_it_goes_to(world: World) -> None:
    """KIP-380: what was meant for another life of the broker is refused."""
    world.send(metadata(world.cluster), stop(1, 0), lead(world.cluster, 2))
    await world.channels.idle(PATIENCE_MS)

    epochs = [{body["broker_epoch"] for _, body in each.taken} for each in world.brokers]
    assert [{101}, {102}] == epochs


async def test_the_next_request_waits_for_the_answer_to_the_one_before(world: World) -> None:
    """ControllerChannelManager: one request in flight for each broker."""
    first, _ = world.brokers
    first.react = hang
    world.send(metadata(world.cluster), lead(world.cluster, 1))
    await first.until(1)
    for _ in range(20):
        await asyncio.sleep(0)

    assert [META] == first.keys
    assert 2 == world.channels.queued()[1]


async def test_a_broker_that_does_not_answer_holds_up_no_other(world: World) -> None:
    """Each broker has a channel of its own."""
    silent, other = world.brokers
    silent.react = hang
    world.send(metadata(world.cluster), metadata(world.cluster), lead(world.cluster, 2))

    assert [META, META, LEAD] == await other.until(3)
    assert not await world.channels.idle(0)
    assert 2 == world.channels.queued()[1]


async def test_a_request_is_sent_again_until_it_is_answered(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Wire-facts, gotcha 5: a broker registers before its socket accepts. In order, and told once."""
    first, _ = world.brokers
    first.react = hang_up
    with caplog.at_level(logging.INFO):
        world.send(metadata(world.cluster), lead(world.cluster, 1))
        await first.until(3)
        first.react = None
        assert await world.channels.idle(PATIENCE_MS)

    assert [META, META, META] == first.keys[:3]
    assert LEAD == first.keys[-1]
    assert 1 == first.keys.count(LEAD)
    again = [record for record in caplog.records if "sent again" in record.getMessage()]
    assert [(1, "UPDATE_METADATA")] == [(record.broker, record.api) for record in again]


async def test_a_broker_that_is_not_there_yet_is_told_when_it_comes(world: World) -> None:
    """Its port refuses connections at first."""
    first, _ = world.brokers
    port = first.port
    await first.close()
    world.send(metadata(world.cluster))
    for _ in range(50):
        await asyncio.sleep(0.001)
    await first.start(port)

    assert await world.channels.idle(PATIENCE_MS)
    assert [META] == first.keys


async def test_another_life_of_a_broker_begins_with_an_empty_channel(world: World) -> None:
    """C13: nothing after its epoch changed; it is told everything anew."""
    first, _ = world.brokers
    first.react = hang
    world.send(stop(1, 0), metadata(world.cluster))
    await first.until(1)
    first.react = None
    world.observe(world.registered(epoch=777))
    world.send(lead(world.cluster, 1))

    assert await world.channels.idle(PATIENCE_MS)
    assert [STOP, LEAD] == first.keys
    assert 777 == first.taken[-1][1]["broker_epoch"]
    assert [] == world.answers


async def test_a_broker_that_left_is_told_nothing_more(world: World) -> None:
    """Wire-facts, gotcha 7: what waited for it is dropped, and whoever waits for that goes on."""
    first, second = world.brokers
    first.react = hang
    world.send(metadata(world.cluster), lead(world.cluster, 1))
    await first.until(1)
    waiting = asyncio.create_task(world.channels.idle(PATIENCE_MS))
    await asyncio.sleep(0)
    world.observe(world.registered()[1:])
    world.send(metadata(world.cluster), stop(1, 0))

    assert await waiting
    assert [META, META] == await second.until(2)
    assert {2} == set(world.channels.queued())
    assert [META] == first.keys


async def test_a_broker_under_another_address_goes_on_where_it_was(start: Start, world: World) -> None:
    """Its registration was rewritten in place (KafkaZkClient.updateBrokerInfo): the same life, and nobody tells it again."""
    first, _ = world.brokers
    first.react = hang
    world.send(stop(1, 0), metadata(world.cluster))
    await first.until(1)
    moved = await start()
    world.observe(world.registered(port=moved.port))
    world.send(lead(world.cluster, 1))

    assert await world.channels.idle(PATIENCE_MS)
    assert [STOP, META, LEAD] == moved.keys
    assert [StopReplicaAnswered(1, (TopicPartition("orders", 0),), {})] == world.answers


async def test_endpoints_that_nobody_here_uses_may_change(world: World) -> None:
    """Only the inter-broker listener is ours: the connection stays."""
    first, _ = world.brokers
    world.send(metadata(world.cluster))
    await world.channels.idle(PATIENCE_MS)
    changed = broker(1, port=first.port)
    world.observe([Broker(1, changed.epoch, changed.endpoints[1:], "a-rack"), *world.registered()[1:]])
    world.send(metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert 1 == len(first.connections)


async def test_a_broker_without_the_inter_broker_listener_is_told_nothing_and_told_of(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It cannot be reached; the log says why."""
    without = broker(1)
    world.send(metadata(world.cluster))
    world.observe([Broker(1, without.epoch, without.endpoints[:1], None), *world.registered()[1:]])
    world.send(metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert (1, "INTERNAL") == (record.broker, record.listener)


async def test_whoever_waits_for_what_was_sent_does_not_wait_for_what_comes_after(world: World) -> None:
    """A busy controller always has something to tell: a caller waits for its own news."""
    first, _ = world.brokers
    release = asyncio.Event()

    async def slow_at_last(key: ApiKey, _body: Body) -> Body | None:
        if key is STOP:
            await release.wait()
        return None

    first.react = slow_at_last
    world.send(metadata(world.cluster), lead(world.cluster, 1))
    waiting = asyncio.create_task(world.channels.idle(PATIENCE_MS))
    await asyncio.sleep(0)
    world.send(stop(1, 0))

    assert await waiting
    assert not await world.channels.idle(0)
    release.set()
    assert await world.channels.idle(PATIENCE_MS)


async def test_an_answered_deletion_is_an_event_of_that_broker(world: World) -> None:
    """C10: the topic's znode goes after every replica's broker answered."""
    world.send(stop(1, 0, delete=False), stop(1, 0, 1), stop(2, 0, 1))
    await world.channels.idle(PATIENCE_MS)

    done = (TopicPartition("orders", 0), TopicPartition("orders", 1))
    assert [StopReplicaAnswered(1, done), StopReplicaAnswered(2, done)] == sorted(world.answers, key=lambda e: e.broker)


async def test_a_stale_controller_epoch_at_the_top_level_deposes(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Wire-facts: the broker has heard of a newer controller."""
    world.brokers[0].react = refuse_once(ErrorCode.STALE_CONTROLLER_EPOCH)
    world.send(metadata(world.cluster))
    await world.channels.idle(PATIENCE_MS)

    assert 1 == world.deposed
    assert ["a broker has heard of a newer controller"] == [record.getMessage() for record in caplog.records]


async def test_a_partition_error_11_deposes_nobody(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Wire-facts, gotcha 6: the leader epoch is what the broker has already."""

    async def react(_key: ApiKey, body: Body) -> Body | None:
        topic_id = body["topic_states"][0]["topic_id"]
        return {"topics": [{"topic_id": topic_id, "partition_errors": [{"partition_index": 0, "error_code": 11}]}]}

    world.brokers[0].react = react
    world.send(lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert 0 == world.deposed
    assert [] == caplog.records


async def test_replicas_in_failed_log_directories_are_an_event_when_that_is_news(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-112: KAFKA_STORAGE_ERROR for a partition; the answer that has none for it says that it is back."""
    code = ErrorCode.KAFKA_STORAGE_ERROR

    async def react(_key: ApiKey, body: Body) -> Body | None:
        topic_id = body["topic_states"][0]["topic_id"]
        errors = [{"partition_index": 0, "error_code": code}, {"partition_index": 1, "error_code": ErrorCode.NONE}]
        return {"topics": [{"topic_id": topic_id, "partition_errors": errors}]}

    world.brokers[0].react = react
    for expected in (
        ReplicasAnswered(1, 101, (TopicPartition("orders", 0),), ()),
        None,
        ReplicasAnswered(1, 101, (), (TopicPartition("orders", 0),)),
        None,
    ):
        world.answers.clear()
        world.send(lead(world.cluster, 1))
        await world.channels.idle(PATIENCE_MS)
        assert ([] if expected is None else [expected]) == world.answers
        if expected is not None:
            apply(world.cluster, ReplicasObserved(1, expected.offline, expected.online))
        else:
            code = ErrorCode.NONE

    assert ["KAFKA_STORAGE_ERROR"] == [record.error for record in caplog.records]


@pytest.mark.parametrize("code", [ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR])
async def test_an_answer_that_brings_no_news_of_a_failed_log_directory_is_no_event(world: World, code: int) -> None:
    """A leader epoch that the broker has already says nothing of the replica."""
    apply(world.cluster, ReplicasObserved(1, (TopicPartition("orders", 0),), ()))

    async def react(_key: ApiKey, body: Body) -> Body | None:
        topic_id = body["topic_states"][0]["topic_id"]
        return {"topics": [{"topic_id": topic_id, "partition_errors": [{"partition_index": 0, "error_code": code}]}]}

    world.brokers[0].react = react
    world.send(lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert [] == world.answers


async def test_what_another_life_of_a_broker_refuses_is_told_by_its_registration(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-380: it will be told everything anew."""
    first, _ = world.brokers
    first.react = refuse_once(ErrorCode.STALE_BROKER_EPOCH)
    world.send(metadata(world.cluster), lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert [META, LEAD] == first.keys
    assert 0 == world.deposed
    assert ["STALE_BROKER_EPOCH"] == [record.error for record in caplog.records]


async def test_a_leader_and_isr_that_a_broker_throws_at_comes_back_in_halves(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer does not say which partition was at fault; what is told again says its epochs as they were told."""
    first, _ = world.brokers
    first.react = refuse_once(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.send(lead(world.cluster, 1), metadata(world.cluster))
    await world.channels.idle(PATIENCE_MS)

    assert [LEAD, META] == first.keys
    halves = [
        ReplicasRefused(1, {TopicPartition("orders", 0): 4}),
        ReplicasRefused(1, {TopicPartition("orders", 1): 0}),
    ]
    assert halves == [retry.event for retry in world.retries]
    assert ["NOT_LEADER_OR_FOLLOWER"] == [record.error for record in caplog.records]


async def test_an_update_metadata_that_a_broker_throws_at_is_sent_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It says how things are: it may be heard twice, and has to be heard (C12)."""
    first, _ = world.brokers
    first.react = refuse_once(ErrorCode.UNKNOWN_SERVER_ERROR)
    world.send(metadata(world.cluster), lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert [META, META, LEAD] == first.keys
    assert ["UNKNOWN_SERVER_ERROR"] == [record.error for record in caplog.records]


async def test_an_update_metadata_that_a_broker_throws_at_each_time_holds_nothing_up(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is passed over after MAX_REFUSALS, and said once: what waits behind it may do."""
    monkeypatch.setattr(channels_module, "MAX_REFUSALS", 2)
    first, _ = world.brokers

    async def react(key: ApiKey, _body: Body) -> Body | None:
        return {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR} if key is META else None

    first.react = react
    world.send(metadata(world.cluster), lead(world.cluster, 1))
    await world.channels.idle(PATIENCE_MS)

    assert [META, META, META, LEAD] == first.keys
    assert 1 == len(caplog.records)


@pytest.mark.parametrize("key", [META, LEAD, STOP])
async def test_a_broker_that_does_not_let_the_controller_in_is_asked_until_it_does(
    world: World, caplog: pytest.LogCaptureFixture, key: ApiKey
) -> None:
    """It looked into nothing, so the same may be sent; the log says once what has to be granted."""
    first, _ = world.brokers
    refusals = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 3

    async def react(_key: ApiKey, _body: Body) -> Body | None:
        return {"error_code": refusals.pop()} if refusals else None

    first.react = react
    world.send({META: metadata(world.cluster), LEAD: lead(world.cluster, 1), STOP: stop(1, 0)}[key])
    await world.channels.idle(PATIENCE_MS)

    assert [key] * 4 == first.keys
    assert [] == world.retries
    assert (1 if key is STOP else 0) == len(world.answers)
    assert ["ClusterAction on the Cluster resource" in record.getMessage() for record in caplog.records] == [True]


async def test_a_broker_that_does_not_serve_a_request_is_complained_of_once_and_told_the_rest(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """One of Kafka 4, say: no answer will ever come. Bad peers never flood a log."""
    first, _ = world.brokers
    del first.ranges[LEAD]
    world.send(lead(world.cluster, 1), lead(world.cluster, 1), metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert [META] == first.keys
    assert [(logging.ERROR, "LEADER_AND_ISR")] == [(record.levelno, record.api) for record in caplog.records]


async def test_a_failure_on_one_answer_does_not_end_the_channel(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker's channel that ended without a word would leave it with an old state for good (C12)."""
    first, _ = world.brokers

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("controller_core.shell.brokers.channels.meaning_of", fail)
    world.send(lead(world.cluster, 1), metadata(world.cluster))

    assert await world.channels.idle(PATIENCE_MS)
    assert [LEAD, META] == first.keys
    assert {"unexpected failure on a request to broker"} == {record.getMessage() for record in caplog.records}


async def test_a_broker_that_lags_too_far_behind_is_told_the_present_state_instead(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A limit on everything (C12): what is kept is what nothing else says: deletions, and topics that are no more."""
    monkeypatch.setattr(channel_module, "MAX_QUEUED", 5)
    first, _ = world.brokers
    release = asyncio.Event()

    async def slow(_key: ApiKey, _body: Body) -> Body | None:
        await release.wait()
        return None

    first.react = slow
    world.observe(world.registered(epoch=555))  # A channel under the limit of this test.
    world.send(lead(world.cluster, 1), metadata(world.cluster, deleting=True), stop(1, 0), metadata(world.cluster))
    apply(world.cluster, read_change(world.cluster, "known orders-0=1/9/1/11"))
    world.send(lead(world.cluster, 1), lead(world.cluster, 1))
    assert ["a broker lags too far behind and is told everything anew"] == [
        record.getMessage() for record in caplog.records
    ]
    release.set()

    assert await world.channels.idle(PATIENCE_MS)
    assert [LEAD, META, STOP, META, LEAD, LEAD] == first.keys
    told = [body["topic_states"][0]["partition_states"][0] for _, body in first.taken]
    assert [4, -2, 9, 9] == [
        told[0]["leader_epoch"],
        told[1]["leader"],
        told[3]["leader_epoch"],
        told[4]["leader_epoch"],
    ]


async def test_deletions_alone_do_not_bring_the_whole_state_with_each_of_them(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be told anew stays; the limit grows with it, so that the state is told seldom."""
    monkeypatch.setattr(channel_module, "MAX_QUEUED", 5)
    first, _ = world.brokers
    first.react = hang
    world.observe(world.registered(epoch=555))
    world.send(*(stop(1, 0) for _ in range(40)))

    assert len(caplog.records) <= 4
    assert world.channels.queued()[1] <= 40 + 2 * len(caplog.records)


def at(port: int) -> Endpoint:
    """Say where a broker is."""
    return Endpoint("INTERNAL", "127.0.0.1", port, "PLAINTEXT")


async def test_a_broker_is_asked_for_its_settings(world: World) -> None:
    """DescribeConfigs of the broker: what a controller that is a broker reads in its own configuration."""
    first, _ = world.brokers
    told = {
        "reserved.broker.max.id": "1000",
        "num.partitions": "3",
        "default.replication.factor": "2",
        "delete.topic.enable": "false",
    }
    first.react = settings_told(told)

    expected = BrokerSettings(Defaults(3, 2, delete_topic_enable=False), 1000)
    assert expected == await inquire(1, at(first.port))
    ((_, request),) = first.taken
    (resource,) = request["resources"]
    assert (4, "1") == (resource["resource_type"], resource["resource_name"])
    assert set(told) < set(resource["configuration_keys"])
    assert request["include_synonyms"]


def settings_told(told: dict[str, str | None], error_code: int = 0) -> Callable[[ApiKey, Body], Awaitable[Body | None]]:
    """Answer DescribeConfigs."""

    async def react(_key: ApiKey, _body: Body) -> Body | None:
        configs = [{"name": name, "value": value} for name, value in told.items()]
        result = {"error_code": error_code, "error_message": "why", "configs": configs, "resource_name": "1"}
        return {"results": [result] if told else []}

    return react


@pytest.mark.parametrize(
    ("changed", "error_code"),
    [
        pytest.param(None, 0, id="no result at all"),
        pytest.param({"num.partitions": "many"}, 0, id="no number"),
        pytest.param({"num.partitions": None}, 0, id="no value"),
        pytest.param({}, 0, id="a setting less"),
        pytest.param({"num.partitions": "3"}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, id="not allowed"),
        pytest.param({"num.partitions": "3"}, 32_000, id="an error of the future"),
    ],
)
async def test_a_broker_that_does_not_tell_is_asked_again_later(
    world: World, changed: dict[str, str | None] | None, error_code: int
) -> None:
    """Whatever it answers: one error, which the process knows."""
    first, _ = world.brokers
    others = {"reserved.broker.max.id": "1000", "default.replication.factor": "2", "delete.topic.enable": "true"}
    first.react = settings_told({} if changed is None else others | changed, error_code)

    with pytest.raises(InquiryError, match="broker 1"):
        await inquire(1, at(first.port))


async def test_a_broker_that_cannot_be_asked_is_asked_again_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not there, does not know the request, or does not answer in time."""
    monkeypatch.setattr(inquiry_module, "TIMEOUT_MS", 50)
    first, second = world.brokers
    del first.ranges[ApiKey.DESCRIBE_CONFIGS]
    second.react = hang

    for port in (1, first.port, second.port):
        with pytest.raises(InquiryError, match="broker 1"):
            await inquire(1, at(port))
