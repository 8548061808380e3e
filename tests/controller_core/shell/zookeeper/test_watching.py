"""Watching brokers, topics and the queue of deletions: a watch only says "look again"."""

import logging
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from controller_core.model.events import ControlledShutdown, CreateTopics, NewTopic
from controller_core.model.sends import SendMetadata
from controller_core.shell.active import OverloadedError
from controller_core.shell.zookeeper import watching as watching_module
from controller_core.shell.zookeeper.watching import Watching
from kafka_wire.errors import ErrorCode
from kafka_zookeeper import paths
from tests.controller_core.shell.terms import Term, isr_request, settled
from tests.controller_core.shell.zookeeper.vocabulary import tp

TOPIC = b'{"partitions":{"0":[1,2]},"version":3}'


async def refused(_event: object) -> None:
    """As an event whose writes are refused each time."""
    raise OverloadedError("others write the same znodes")


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """A tenure over brokers 1, 2 and 3 that has had its first looks."""
    monkeypatch.setattr(watching_module, "LOOK_AGAIN_S", 0.0)
    term = Term(monkeypatch, 1, 2, 3)
    Watching(term.controller, term.session, term.store.unreadable).start()
    await settled()
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()


async def test_a_broker_that_comes_or_goes_is_seen(term: Term) -> None:
    """Its registration is an ephemeral znode."""
    term.register(4)
    await settled()
    assert sorted(term.cluster.brokers) == [1, 2, 3, 4]
    term.server.drop(paths.broker(2))
    await settled()
    assert sorted(term.cluster.brokers) == [1, 3, 4]


async def test_a_broker_that_bounced_between_two_looks_is_another(term: Term) -> None:
    """KIP-380: the registration's czxid is the broker epoch; what it had not written is gone."""
    await term.create("orders", (1, 2))
    before = term.cluster.brokers[1].epoch
    term.server.drop(paths.broker(1))
    term.register(1)
    await settled()

    assert before < term.cluster.brokers[1].epoch
    assert term.state("orders-0") == (2, 1, (2,))


async def test_endpoints_that_change_in_place_are_seen(term: Term) -> None:
    """A broker rewrites its registration when its listeners are configured anew (KafkaZkClient.updateBrokerInfo)."""
    epoch = term.cluster.brokers[2].epoch
    term.register(2, port=9999)
    await settled()

    assert term.cluster.brokers[2].endpoints[0].port == 9999
    assert epoch == term.cluster.brokers[2].epoch


async def test_a_topic_that_a_broker_wrote_becomes_online(term: Term) -> None:
    """Protocol notes, Z70: auto-creation; no request tells of it."""
    term.server.put(paths.topic("auto"), TOPIC)
    await settled()

    assert term.state("auto-0") == (1, 0, (1, 2))


async def test_a_topic_that_vanished_is_forgotten(term: Term) -> None:
    """Somebody deleted it by hand."""
    await term.create("orders", (1, 2))
    term.server.drop(paths.topic("orders"))
    await settled()

    assert term.cluster.topics == {}


async def test_a_deletion_that_somebody_else_queued_is_carried_out(term: Term) -> None:
    """/admin/delete_topics is the wish, whoever wrote it."""
    await term.create("orders", (1, 2))
    term.server.put(paths.delete_topic("orders"))
    await settled()
    term.channels.answer_deletions()
    await settled()

    assert term.server.children(paths.DELETE_TOPICS) == []
    assert term.server.children(paths.TOPICS) == []


async def test_a_name_that_no_topic_has_is_taken_out_of_the_queue(term: Term) -> None:
    """As Kafka does (KafkaController.processTopicDeletion)."""
    term.server.put(paths.delete_topic("never"))
    await settled()

    assert term.server.children(paths.DELETE_TOPICS) == []


async def test_topics_of_our_own_are_no_news(term: Term) -> None:
    """The look waits for the turn in which the topic is written, and finds it known."""
    await term.create("orders", (1, 2))
    await settled()

    assert term.state("orders-0") == (1, 0, (1, 2))
    assert list(term.cluster.topics) == ["orders"]


async def test_what_changed_while_the_connection_was_away_is_seen(term: Term) -> None:
    """Watches end with the connection; a connection that broke counts as a change."""
    term.session.blink()
    term.server.put(paths.topic("auto"), TOPIC)
    term.server.drop(paths.broker(3))
    await settled()

    assert list(term.cluster.topics) == ["auto"]
    assert sorted(term.cluster.brokers) == [1, 2]


async def test_what_changes_between_a_read_and_the_end_of_its_turn_is_seen(term: Term) -> None:
    """The watch is armed with the read, so nothing falls between two looks."""
    term.server.before_writes.append(lambda: term.server.put(paths.topic("second"), TOPIC))
    term.server.put(paths.topic("first"), TOPIC)
    await settled(200)

    assert list(term.cluster.topics) == ["first", "second"]


async def test_watches_do_not_gather(term: Term) -> None:
    """A limit on everything: one for each list and one for each broker that was ever seen, however long."""
    before = term.server.watches
    for port in range(50):
        term.register(1, port)
        await settled()

    assert 8 + 3 == before == term.server.watches


async def test_a_look_that_leads_to_nothing_is_taken_again(
    term: Term, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Others write the same znodes again and again: the change is seen later, and the watch lives on."""
    with monkeypatch.context() as refusing:
        refusing.setattr(term.controller, "_process", refused)
        term.server.put(paths.topic("auto"), TOPIC)
        await settled()
    assert term.cluster.topics == {}
    assert {record.at for record in caplog.records if record.levelno == logging.WARNING} == {"topics"}
    await settled()

    assert list(term.cluster.topics) == ["auto"]


async def test_a_topic_that_cannot_be_read_keeps_no_other_from_being_seen(term: Term) -> None:
    """Bad input never stops a loop; put right, it is taken in with the next look."""
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


async def test_a_broker_whose_inter_broker_listener_is_back_counts_again(term: Term) -> None:
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
