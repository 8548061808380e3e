"""Notifications of changed configurations: the settings named are read and take effect at once; brokers delete the notifications."""

import logging
from collections.abc import AsyncIterator

import pytest

from controller_core.shell.zookeeper.watching import ClusterWatcher
from kafka_zookeeper import paths
from kafka_zookeeper.formats.configs import encode_config, encode_config_change
from tests.controller_core.shell.terms import Term, settled
from tests.twins.unclean_election import allows_unclean

UNCLEAN = "unclean.leader.election.enable"
DEFAULT = paths.config("brokers", "<default>")


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """An active term with brokers 1 and 2, a topic whose last in-sync replica is offline, and an old notification."""
    term = Term(monkeypatch, 1, 2)
    term.server.put(f"{paths.CONFIG_CHANGE_PREFIX}0000000000", encode_config_change("users/alice"))
    ClusterWatcher(term.controller, term.session, term.store.versions, term.store.unreadable).start()
    await term.create("orders", (1, 2))
    term.isr_by("orders-0", (1,))
    term.server.drop(paths.broker(1))
    await settled(200)
    assert term.state("orders-0") == (-1, 1, (1,))
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()


def leader_of(term: Term) -> int:
    """The leader of orders-0."""
    row = term.cluster.row_of("orders", 0)
    assert row is not None
    return int(term.cluster.columns.leader[row])


def change(term: Term, number: int, entity: str, unclean: str) -> None:
    """Another process changes a configuration and writes a notification."""
    term.server.put(f"{paths.CONFIG}/{entity}", encode_config({UNCLEAN: unclean}))
    term.server.put(f"{paths.CONFIG_CHANGE_PREFIX}{number:010}", encode_config_change(entity))


@pytest.mark.parametrize("entity", ["topics/orders", "brokers/<default>"])
async def test_an_unclean_leader_is_elected_as_soon_as_it_is_allowed(term: Term, entity: str) -> None:
    """KafkaController: TopicUncleanLeaderElectionEnable, UncleanLeaderElectionEnable."""
    change(term, 1, entity, unclean=" TRUE ")
    await settled()

    assert leader_of(term) == 2
    assert len(term.server.children(paths.CONFIG_CHANGES)) == 2


async def test_the_configuration_applies_and_not_the_notification(term: Term) -> None:
    """A setting that was changed and changed back before the read has no effect; notifications of other entities are ignored."""
    change(term, 1, "topics/orders", unclean="true")
    change(term, 2, "topics/orders", unclean="false")
    change(term, 3, "topics/never", unclean="true")
    change(term, 4, "brokers/2", unclean="true")
    await settled()

    assert term.state("orders-0") == (-1, 1, (1,))
    assert term.cluster.unclean_topics == {"orders": False}


async def test_changes_during_a_lost_connection_are_read(term: Term) -> None:
    """Watches end with the connection; brokers may have deleted older notifications in the meantime."""
    term.session.lose_connection()
    term.server.drop(f"{paths.CONFIG_CHANGE_PREFIX}0000000000")
    change(term, 7, "topics/orders", unclean="true")
    await settled()

    assert leader_of(term) == 2


@pytest.mark.parametrize("garbage", [None, b"", b"\xff", b"[]", b'{"version":9}', b'{"version":2,"entity_path":7}'])
async def test_a_garbage_notification_is_logged_once_and_not_deleted(
    term: Term, caplog: pytest.LogCaptureFixture, garbage: bytes | None
) -> None:
    """Each broker has to read a notification, so the controller deletes none; the other ones are processed."""
    term.server.put(f"{paths.CONFIG_CHANGES}/garbage", garbage)
    await settled()
    change(term, 1, "topics/orders", unclean="true")
    await settled()

    assert leader_of(term) == 2
    named = [record for record in caplog.records if "notification" in record.getMessage()]
    assert [vars(record)["path"] for record in named] == [f"{paths.CONFIG_CHANGES}/garbage"]
    assert all(record.levelno == logging.WARNING and vars(record)["error"] for record in named)


async def test_a_configuration_that_cannot_be_decoded_does_not_allow_unclean_leaders(term: Term) -> None:
    """C7: an unclean election may lose records."""
    term.server.put(paths.topic_config("orders"), b'{"version":1,"config":{"a":1}}')
    term.server.put(DEFAULT, b'{"version":1,"config":{"%s":"true"}}' % UNCLEAN.encode())
    for number, entity in enumerate(("topics/orders", "brokers/<default>")):
        term.server.put(f"{paths.CONFIG_CHANGE_PREFIX}{number:010}7", encode_config_change(entity))
    await settled()

    assert term.state("orders-0") == (-1, 1, (1,))


async def test_a_topic_created_by_a_broker_has_its_setting(term: Term) -> None:
    """Brokers write a topic's configuration before its assignment, without a notification (AdminZkClient)."""
    term.server.put(paths.topic_config("auto"), encode_config({UNCLEAN: "true"}))
    term.server.put(paths.topic("auto"), b'{"partitions":{"0":[2]},"version":3}')
    await settled()

    assert allows_unclean(term.cluster, "auto")
