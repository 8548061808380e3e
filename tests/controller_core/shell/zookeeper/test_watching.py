"""ClusterWatcher brokers, topics and the queue of deletions: a watch only says "look again"."""

import logging
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from controller_core.model.events import ControlledShutdown, CreateTopics, NewTopic
from controller_core.model.sends import SendMetadata
from controller_core.shell.active import OverloadedError
from controller_core.shell.zookeeper import watching as watching_module
from controller_core.shell.zookeeper.watching import ClusterWatcher
from kafka_wire.errors import ErrorCode
from kafka_zookeeper import paths
from tests.controller_core.shell.tenures import Tenure, isr_wish, settled
from tests.controller_core.shell.zookeeper.vocabulary import tp

TOPIC = b'{"partitions":{"0":[1,2]},"version":3}'


async def refused(_event: object) -> None:
    """As an event whose writes are refused each time."""
    raise OverloadedError("others write the same znodes")


@pytest.fixture
async def tenure(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tenure]:
    """A tenure over brokers 1, 2 and 3 that has had its first looks."""
    monkeypatch.setattr(watching_module, "OVERLOAD_PAUSE_S", 0.0)
    tenure = Tenure(monkeypatch, 1, 2, 3)
    ClusterWatcher(tenure.controller, tenure.session, tenure.store.unreadable).start()
    await settled()
    yield tenure
    assert not tenure.controller.has_ended, await tenure.controller.ended()
    await tenure.controller.close()


async def test_a_broker_that_comes_or_goes_is_seen(tenure: Tenure) -> None:
    """Its registration is an ephemeral znode."""
    tenure.register(4)
    await settled()
    assert sorted(tenure.cluster.brokers) == [1, 2, 3, 4]
    tenure.server.drop(paths.broker(2))
    await settled()
    assert sorted(tenure.cluster.brokers) == [1, 3, 4]


async def test_a_broker_that_bounced_between_two_looks_is_another(tenure: Tenure) -> None:
    """KIP-380: the registration's czxid is the broker epoch; what it had not written is gone."""
    await tenure.create("orders", (1, 2))
    before = tenure.cluster.brokers[1].epoch
    tenure.server.drop(paths.broker(1))
    tenure.register(1)
    await settled()

    assert before < tenure.cluster.brokers[1].epoch
    assert tenure.state("orders-0") == (2, 1, (2,))


async def test_endpoints_that_change_in_place_are_seen(tenure: Tenure) -> None:
    """A broker rewrites its registration when its listeners are configured anew (KafkaZkClient.updateBrokerInfo)."""
    epoch = tenure.cluster.brokers[2].epoch
    tenure.register(2, port=9999)
    await settled()

    assert tenure.cluster.brokers[2].endpoints[0].port == 9999
    assert epoch == tenure.cluster.brokers[2].epoch


async def test_a_topic_that_a_broker_wrote_becomes_online(tenure: Tenure) -> None:
    """Protocol notes, Z70: auto-creation; no request tells of it."""
    tenure.server.put(paths.topic("auto"), TOPIC)
    await settled()

    assert tenure.state("auto-0") == (1, 0, (1, 2))


async def test_a_topic_that_vanished_is_forgotten(tenure: Tenure) -> None:
    """Somebody deleted it by hand."""
    await tenure.create("orders", (1, 2))
    tenure.server.drop(paths.topic("orders"))
    await settled()

    assert tenure.cluster.topics == {}


async def test_a_deletion_that_somebody_else_queued_is_carried_out(tenure: Tenure) -> None:
    """/admin/delete_topics is the wish, whoever wrote it."""
    await tenure.create("orders", (1, 2))
    tenure.server.put(paths.delete_topic("orders"))
    await settled()
    tenure.channels.answer_deletions()
    await settled()

    assert tenure.server.children(paths.DELETE_TOPICS) == []
    assert tenure.server.children(paths.TOPICS) == []


async def test_a_name_that_no_topic_has_is_taken_out_of_the_queue(tenure: Tenure) -> None:
    """As Kafka does (KafkaController.processTopicDeletion)."""
    tenure.server.put(paths.delete_topic("never"))
    await settled()

    assert tenure.server.children(paths.DELETE_TOPICS) == []


async def test_topics_of_our_own_are_no_news(tenure: Tenure) -> None:
    """The look waits for the turn in which the topic is written, and finds it known."""
    await tenure.create("orders", (1, 2))
    await settled()

    assert tenure.state("orders-0") == (1, 0, (1, 2))
    assert list(tenure.cluster.topics) == ["orders"]


async def test_what_changed_while_the_connection_was_away_is_seen(tenure: Tenure) -> None:
    """Watches end with the connection; a connection that broke counts as a change."""
    tenure.session.blink()
    tenure.server.put(paths.topic("auto"), TOPIC)
    tenure.server.drop(paths.broker(3))
    await settled()

    assert list(tenure.cluster.topics) == ["auto"]
    assert sorted(tenure.cluster.brokers) == [1, 2]


async def test_what_changes_between_a_read_and_the_end_of_its_turn_is_seen(tenure: Tenure) -> None:
    """The watch is armed with the read, so nothing falls between two looks."""
    tenure.server.before_writes.append(lambda: tenure.server.put(paths.topic("second"), TOPIC))
    tenure.server.put(paths.topic("first"), TOPIC)
    await settled(200)

    assert list(tenure.cluster.topics) == ["first", "second"]


async def test_watches_do_not_gather(tenure: Tenure) -> None:
    """A limit on everything: one for each list and one for each broker that was ever seen, however long."""
    before = tenure.server.watches
    for port in range(50):
        tenure.register(1, port)
        await settled()

    assert 8 + 3 == before == tenure.server.watches


async def test_a_look_that_leads_to_nothing_is_taken_again(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Others write the same znodes again and again: the change is seen later, and the watch lives on."""
    with monkeypatch.context() as refusing:
        refusing.setattr(tenure.controller, "_run", refused)
        tenure.server.put(paths.topic("auto"), TOPIC)
        await settled()
    assert tenure.cluster.topics == {}
    assert {record.watch for record in caplog.records if record.levelno == logging.WARNING} == {"topics"}
    await settled()

    assert list(tenure.cluster.topics) == ["auto"]


async def test_a_topic_that_cannot_be_read_keeps_no_other_from_being_seen(tenure: Tenure) -> None:
    """Bad input never stops a loop; put right, it is taken in with the next look."""
    tenure.server.put(paths.topic("bad"), b"garbage")
    await settled()
    tenure.server.put(paths.topic("good"), TOPIC)
    await settled()
    assert list(tenure.cluster.topics) == ["good"]
    tenure.server.put(paths.topic("bad"), TOPIC)
    tenure.server.put(paths.topic("next"), TOPIC)
    await settled()

    assert set(tenure.cluster.topics) == {"bad", "good", "next"}


async def test_a_broker_without_the_inter_broker_listener_is_not_elected(
    tenure: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    """ControllerChannelManager.addNewBroker needs the inter-broker endpoint: Kafka's controller fails to add such a broker.

    Its requests are refused like those of any broker that is not registered, and it is logged once.
    """
    await tenure.create("orders", (1, 2), (2, 3))
    tenure.register(2, listener="OTHER")
    await settled()
    tenure.register(3)
    await settled()

    assert sorted(tenure.cluster.brokers) == [1, 3]
    assert sorted(tenure.cluster.unreachable) == [2]
    assert tenure.state("orders-0") == (1, 1, (1,))
    assert tenure.state("orders-1") == (3, 1, (3,))
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.__dict__["broker"] == 2
    assert record.__dict__["its_listeners"] == ["OTHER"]

    joining = await tenure.controller.submit(isr_wish(tenure, "orders-0", (1, 2)))
    assert joining[tp("orders-0")].code == ErrorCode.INELIGIBLE_REPLICA
    epoch = tenure.cluster.unreachable[2].epoch
    shutdown = await tenure.controller.submit(ControlledShutdown(2, epoch))
    assert shutdown.code == ErrorCode.BROKER_NOT_AVAILABLE
    placed = await tenure.controller.submit(CreateTopics((NewTopic("logs", uuid4(), 1, 3),)))
    assert placed["logs"].failure.code == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_a_broker_whose_inter_broker_listener_is_back_counts_again(tenure: Tenure) -> None:
    """The same registration, rewritten in place: the broker is sent the full state and leads what only it can lead."""
    await tenure.create("orders", (2,))
    tenure.register(2, listener="OTHER")
    await settled()
    assert tenure.state("orders-0") == (-1, 1, (2,))
    tenure.channels.sent.clear()

    tenure.register(2)
    await settled()

    assert tenure.cluster.unreachable == {}
    assert tenure.state("orders-0") == (2, 2, (2,))
    full = next(send for send in tenure.channels.sent if isinstance(send, SendMetadata) and len(send.rows))
    assert full.brokers == (2,)
