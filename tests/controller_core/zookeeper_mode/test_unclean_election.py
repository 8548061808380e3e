"""Unclean leader election: topics' settings, else the brokers' default, from the moment they are known (C7).

Source: KafkaController, UncleanLeaderElectionEnable and TopicUncleanLeaderElectionEnable; DynamicBrokerConfig's order.
"""

import pytest

from controller_core.model import zookeeper_events
from controller_core.model.settings import BrokerDefault
from tests.controller_core.decisions.driver import Driver, State, cluster_with
from tests.controller_core.decisions.messages import Message
from tests.twins.unclean_election import allows_unclean

STATIC, DYNAMIC = BrokerDefault.STATIC, BrokerDefault.DYNAMIC


@pytest.fixture
def driver() -> Driver:
    """Two topics whose last replica in sync is offline, while another replica is live."""
    driver = cluster_with([1, 2], {"orders": [[1, 2]], "logs": [[1, 2]]})
    for name in ("orders", "logs"):
        driver.alter_isr(f"{name}-0", [1])
    driver.kill(1)
    assert [driver.state(f"{name}-0") for name in ("orders", "logs")] == [State(-1, 1, (1,))] * 2
    driver.forget()
    return driver


def test_a_topic_that_starts_to_allow_it_gets_a_leader_at_once(driver: Driver) -> None:
    """TopicUncleanLeaderElectionEnable: leaders are elected only for the topic's offline partitions."""
    driver.submit(zookeeper_events.UncleanElectionRead({"orders": True}))

    assert driver.state("orders-0") == State(2, 2, (2,))
    assert driver.state("logs-0") == State(-1, 1, (1,))
    assert any("UNCLEAN" in line for line in driver.lines)


@pytest.mark.shows("C7")
def test_a_default_that_allows_it_applies_to_topics_without_a_setting(driver: Driver) -> None:
    """UncleanLeaderElectionEnable; C7: the topic's configuration takes precedence."""
    driver.submit(zookeeper_events.UncleanElectionRead({"logs": False}))
    driver.submit(zookeeper_events.UncleanElectionRead(defaults={STATIC: True}))

    assert driver.state("orders-0") == State(2, 2, (2,))
    assert driver.state("logs-0") == State(-1, 1, (1,))


@pytest.mark.parametrize("order", [(STATIC, DYNAMIC), (DYNAMIC, STATIC)])
@pytest.mark.parametrize("allowed", [True, False])
def test_the_dynamic_default_takes_precedence_over_the_one_in_brokers_files(
    driver: Driver, order: tuple[BrokerDefault, ...], allowed: bool
) -> None:
    """DynamicBrokerConfig, in either order of reading. While neither allows it, no leader is elected."""
    settings = {STATIC: not allowed, DYNAMIC: allowed}
    driver.submit(zookeeper_events.UncleanElectionRead(defaults={source: settings[source] for source in order}))

    assert allowed is allows_unclean(driver.cluster, "orders")
    assert (2 if allowed else -1) == driver.state("orders-0").leader


def test_a_removed_setting_no_longer_applies(driver: Driver) -> None:
    """Current leaders stay."""
    driver.submit(zookeeper_events.UncleanElectionRead({"orders": True}, {DYNAMIC: True}))
    driver.submit(zookeeper_events.UncleanElectionRead({"orders": None}, {DYNAMIC: None}))

    assert not allows_unclean(driver.cluster, "orders")
    assert driver.state("orders-0").leader == 2


def test_known_settings_have_no_effect(driver: Driver) -> None:
    """A repeated read changes nothing, and unknown topics are ignored."""
    driver.submit(zookeeper_events.UncleanElectionRead({"logs": None, "never": True}, {STATIC: None}))

    assert driver.changes == []
    assert driver.sent(Message) == []


def test_a_deleted_topic_loses_its_setting(driver: Driver) -> None:
    """Another topic of that name starts with its own setting."""
    driver.submit(zookeeper_events.UncleanElectionRead({"logs": True}))
    driver.submit(zookeeper_events.TopicsRead((), ("logs",)))

    assert driver.cluster.unclean_topics == {}


def test_a_topic_created_by_a_broker_has_its_setting() -> None:
    """Brokers write a topic's configuration before its assignment (AdminZkClient)."""
    driver = cluster_with([1, 2])
    driver.write_topic("auto", [[1, 2]])
    record = driver.written.record("auto")
    record = zookeeper_events.StoredTopic(
        record.name, record.topic_id, record.replicas, configs={"unclean.leader.election.enable": "true"}
    )
    driver.submit(zookeeper_events.TopicsRead((record,), ()))

    assert allows_unclean(driver.cluster, "auto")
