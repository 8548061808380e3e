"""Topic ids for topics without one (KIP-516): not before brokers are known to use topic ids."""

import json
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from controller_core.model.decision import SendLeaderAndIsr
from controller_core.shell import periodic_tasks as topic_ids_module
from controller_core.shell.active import Defaults
from controller_core.shell.periodic_tasks import assign_topic_ids
from controller_core.shell.zookeeper.watching import ClusterWatcher
from kafka_zookeeper import paths
from kafka_zookeeper.formats.topics import decode_topic
from tests.controller_core.shell.terms import Term, settled
from tests.controller_core.shell.zookeeper.fake_zookeeper import Fault

OLD = b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{}}'
"""A topic as Kafka 2.7 writes it."""
MOVING = b'{"version":2,"partitions":{"0":[3,1,2]},"adding_replicas":{"0":[3]},"removing_replicas":{"0":[2]}}'
WITH_IDS = Defaults(uses_topic_ids=True)


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """A term over brokers 1, 2 and 3 that watches, and has no settings of the brokers yet."""
    monkeypatch.setattr(topic_ids_module, "POLL_S", 0.0)
    term = Term(monkeypatch, 1, 2, 3)
    ClusterWatcher(term.controller, term.session, term.store.versions, term.store.unreadable).start()
    term.controller.spawn(assign_topic_ids(term.controller), "assign topic ids")
    await settled()
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()


def written_id(term: Term, topic: str) -> UUID | None:
    """The id in a topic's znode."""
    return decode_topic(topic, term.server.at(paths.topic(topic)).data).topic_id


async def test_topics_get_an_id_as_soon_as_brokers_are_known_to_use_topic_ids(term: Term) -> None:
    """KafkaController.processTopicIds, `config.usesTopicId`: with an older inter-broker protocol nothing is written."""
    term.server.put(paths.topic("old"), OLD)
    await settled()
    term.controller.set_defaults(Defaults(uses_topic_ids=False))
    await settled()
    assert term.state("old-0") == (1, 0, (1, 2))
    assert term.server.at(paths.topic("old")).data == OLD
    term.channels.sent.clear()

    term.controller.set_defaults(WITH_IDS)
    await settled()

    topic_id = written_id(term, "old")
    assert topic_id is not None
    assert term.cluster.topics["old"].topic_id == topic_id
    assert [send.broker for send in term.channels.sent if isinstance(send, SendLeaderAndIsr)] == [1, 2]


async def test_a_topic_of_an_old_tool_gets_an_id_before_brokers_are_notified(term: Term) -> None:
    """KafkaController.processTopicChange; the znode keeps its lists and becomes version 3."""
    term.controller.set_defaults(WITH_IDS)
    await settled()
    term.channels.sent.clear()

    term.server.put(paths.topic("old"), OLD)
    await settled()
    sent = [send.broker for send in term.channels.sent if isinstance(send, SendLeaderAndIsr)]
    term.server.put(paths.topic("moving"), MOVING)
    await settled()

    assert sent == [1, 2]
    assert written_id(term, "old") is not None

    data = term.server.at(paths.topic("moving")).data
    assert data is not None
    found = json.loads(data)
    assert found.pop("topic_id")
    assert found == {
        "version": 3,
        "partitions": {"0": [3, 1, 2]},
        "adding_replicas": {"0": [3]},
        "removing_replicas": {"0": [2]},
    }


async def test_ids_are_written_under_the_fence_and_over_the_version_that_was_read(term: Term) -> None:
    """C5, C6: compare-and-set; a write of another process in between counts."""
    term.server.put(paths.topic("old"), OLD)
    await settled()
    grown = b'{"version":2,"partitions":{"0":[1,2],"1":[2,3]},"adding_replicas":{},"removing_replicas":{}}'
    term.server.before_writes.append(lambda: term.server.put(paths.topic("old"), grown))

    term.controller.set_defaults(WITH_IDS)
    await settled()

    assert written_id(term, "old") == term.cluster.topics["old"].topic_id
    assert decode_topic("old", term.server.at(paths.topic("old")).data).replicas == {0: (1, 2), 1: (2, 3)}


async def test_more_topics_than_one_portion_all_get_an_id(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers answer one portion before the next is sent."""
    monkeypatch.setattr(topic_ids_module, "MAX_TOPICS_PER_EVENT", 2)
    names = [f"old{number}" for number in range(5)]
    for name in names:
        term.server.put(paths.topic(name), OLD)
    await settled()

    term.controller.set_defaults(WITH_IDS)
    await settled(400)

    assert len({written_id(term, name) for name in names} - {None}) == 5


@pytest.mark.parametrize("fault", [Fault.DONE, Fault.NOT_DONE])
async def test_a_lost_answer_gives_no_topic_two_ids(term: Term, fault: Fault) -> None:
    """The write may be done: the written id counts, and brokers get it."""
    term.server.put(paths.topic("old"), OLD)
    await settled()
    term.server.faults.append(fault)

    term.controller.set_defaults(WITH_IDS)
    await settled(200)

    assert written_id(term, "old") == term.cluster.topics["old"].topic_id
    assert term.server.at(paths.topic("old")).version == term.store.versions.known("old") == 1
