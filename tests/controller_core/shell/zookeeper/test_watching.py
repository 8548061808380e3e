"""Watches of brokers, topics and the queue of deletions: a watch only causes a read."""

import logging
from uuid import uuid4

import pytest

from controller_core.model.decision import SendMetadata
from controller_core.model.events import CreateTopics, NewTopic
from controller_core.model.zookeeper_events import ControlledShutdown
from controller_core.shell.active import OverloadedError
from kafka_wire import ErrorCode
from kafka_zookeeper import paths
from tests.controller_core.shell.terms import Term, isr_request, settled
from tests.controller_core.shell.zookeeper.vocabulary import tp

TOPIC = b'{"partitions":{"0":[1,2]},"version":3}'


async def refused(_event: object) -> None:
    """Like an event whose writes are refused every time."""
    raise OverloadedError("other processes write the same znodes")


async def test_registered_and_unregistered_brokers_are_found(term: Term) -> None:
    """A registration is an ephemeral znode."""
    term.register(4)
    await settled()
    assert sorted(term.cluster.brokers) == [1, 2, 3, 4]
    term.server.drop(paths.broker(2))
    await settled()
    assert sorted(term.cluster.brokers) == [1, 3, 4]


async def test_a_broker_that_restarted_between_two_reads_is_a_new_incarnation(term: Term) -> None:
    """KIP-380: the registration's czxid is the broker epoch; records that were not flushed may be lost."""
    await term.create("orders", (1, 2))
    before = term.cluster.brokers[1].epoch
    term.server.drop(paths.broker(1))
    term.register(1)
    await settled()

    assert term.cluster.brokers[1].epoch > before
    assert term.state("orders-0") == (2, 1, (2,))


async def test_endpoints_changed_in_place_are_found(term: Term) -> None:
    """A broker rewrites its registration when its listeners are reconfigured (KafkaZkClient.updateBrokerInfo)."""
    epoch = term.cluster.brokers[2].epoch
    term.register(2, port=9999)
    await settled()

    assert term.cluster.brokers[2].endpoints[0].port == 9999
    assert term.cluster.brokers[2].epoch == epoch


async def test_a_topic_created_by_a_broker_becomes_online(term: Term) -> None:
    """Protocol notes, Z70: auto-creation, without a request to the controller."""
    term.server.put(paths.topic("auto"), TOPIC)
    await settled()

    assert term.state("auto-0") == (1, 0, (1, 2))


async def test_a_topic_whose_znode_was_deleted_is_removed(term: Term) -> None:
    """An administrator deleted it in ZooKeeper."""
    await term.create("orders", (1, 2))
    term.server.drop(paths.topic("orders"))
    await settled()

    assert term.cluster.topics == {}


async def test_a_deletion_queued_by_another_process_is_executed(term: Term) -> None:
    """/admin/delete_topics is the request, whichever process wrote it."""
    await term.create("orders", (1, 2))
    term.server.put(paths.delete_topic("orders"))
    await settled()
    term.channels.answer_deletions()
    await settled()

    assert term.server.children(paths.DELETE_TOPICS) == []
    assert term.server.children(paths.TOPICS) == []


async def test_an_unknown_topic_is_removed_from_the_queue_of_deletions(term: Term) -> None:
    """As Kafka does (KafkaController.processTopicDeletion)."""
    term.server.put(paths.delete_topic("never"))
    await settled()

    assert term.server.children(paths.DELETE_TOPICS) == []


async def test_topics_created_by_the_controller_are_no_event(term: Term) -> None:
    """The read waits for the event that writes the topic, and then finds it known."""
    await term.create("orders", (1, 2))
    await settled()

    assert term.state("orders-0") == (1, 0, (1, 2))
    assert list(term.cluster.topics) == ["orders"]


async def test_changes_during_a_lost_connection_are_found(term: Term) -> None:
    """Watches end with the connection; a lost connection counts as a change."""
    term.session.lose_connection()
    term.server.put(paths.topic("auto"), TOPIC)
    term.server.drop(paths.broker(3))
    await settled()

    assert list(term.cluster.topics) == ["auto"]
    assert sorted(term.cluster.brokers) == [1, 2]


async def test_changes_between_a_read_and_the_end_of_its_event_are_found(term: Term) -> None:
    """The read sets the watch, so no change is missed between two reads."""
    term.server.before_writes.append(lambda: term.server.put(paths.topic("second"), TOPIC))
    term.server.put(paths.topic("first"), TOPIC)
    await settled(200)

    assert list(term.cluster.topics) == ["first", "second"]


async def test_watches_do_not_accumulate(term: Term) -> None:
    """There is one for each list and one for each registered broker, however long the term lasts."""
    before = term.server.watches
    for port in range(50):
        term.register(1, port)
        await settled()

    assert term.server.watches == before == 8 + 3


async def test_a_read_that_cannot_be_processed_is_repeated(
    term: Term, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Other processes keep writing the same znodes: the change is processed later, and the watch continues."""
    with monkeypatch.context() as refusing:
        refusing.setattr(term.controller, "_process", refused)
        term.server.put(paths.topic("auto"), TOPIC)
        await settled()
    assert term.cluster.topics == {}
    assert {vars(record)["watch"] for record in caplog.records if record.levelno == logging.WARNING} == {"topics"}
    await settled()

    assert list(term.cluster.topics) == ["auto"]


async def test_a_topic_that_cannot_be_decoded_affects_no_other(term: Term) -> None:
    """Bad input never stops a loop; once corrected, the topic is found by the next read."""
    term.server.put(paths.topic("bad"), b"garbage")
    await settled()
    term.server.put(paths.topic("good"), TOPIC)
    await settled()
    assert list(term.cluster.topics) == ["good"]
    term.server.put(paths.topic("bad"), TOPIC)
    term.server.put(paths.topic("next"), TOPIC)
    await settled()

    assert set(term.cluster.topics) == {"bad", "good", "next"}


async def test_a_broker_without_the_inter_broker_listener_is_not_elected(
    term: Term, caplog: pytest.LogCaptureFixture
) -> None:
    """ControllerChannelManager.addNewBroker needs the inter-broker endpoint: Kafka's controller fails to add such a broker.

    Its requests are refused like those of any broker that is not registered, and it is logged once.
    """
    await term.create("orders", (1, 2), (2, 3))
    term.register(2, listener="OTHER")
    await settled()
    term.register(3)
    await settled()

    assert sorted(term.cluster.brokers) == [1, 3]
    assert sorted(term.cluster.unreachable) == [2]
    assert term.state("orders-0") == (1, 1, (1,))
    assert term.state("orders-1") == (3, 1, (3,))
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.__dict__["broker"] == 2
    assert record.__dict__["listeners"] == ["OTHER"]

    joining = await term.controller.submit(isr_request(term, "orders-0", (1, 2)))
    assert joining[tp("orders-0")].code == ErrorCode.INELIGIBLE_REPLICA
    epoch = term.cluster.unreachable[2].epoch
    shutdown = await term.controller.submit(ControlledShutdown(2, epoch))
    assert shutdown.code == ErrorCode.BROKER_NOT_AVAILABLE
    placed = await term.controller.submit(CreateTopics((NewTopic("logs", uuid4(), 1, 3),)))
    assert placed["logs"].failure.code == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_a_broker_is_reachable_again_once_it_has_the_inter_broker_listener(term: Term) -> None:
    """The same registration, rewritten in place: the broker is sent the full state and leads what only it can lead."""
    await term.create("orders", (2,))
    term.register(2, listener="OTHER")
    await settled()
    assert term.state("orders-0") == (-1, 1, (2,))
    term.channels.sent.clear()

    term.register(2)
    await settled()

    assert term.cluster.unreachable == {}
    assert term.state("orders-0") == (2, 2, (2,))
    full = next(send for send in term.channels.sent if isinstance(send, SendMetadata) and len(send.rows))
    assert full.brokers == (2,)
