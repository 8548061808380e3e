"""What a process learns of its brokers and has to know before it acts: its id, their settings.

Sources: protocol notes, Z6; active.Defaults.
"""

import asyncio

import pytest

from controller_core.model.changes import TopicDeletion
from controller_core.shell import broker_settings as learning_module
from controller_core.shell.active import Defaults, TopicDefault
from controller_core.shell.brokers.describe_configs import BrokerSettings, BrokerSettingsError
from controller_core.shell.startup_checks import IdentityError, PolicyError
from kafka_node.security.brokers import BrokerSecurity
from kafka_zookeeper import paths
from kafka_zookeeper.formats.configs import encode_config_change
from tests.controller_core.shell.running_process import OWN_ID, RunningProcess

NEVER_S = 3_600.0
MANY_POLLS = 20


async def test_an_id_that_a_broker_has_is_refused(running: RunningProcess) -> None:
    """Two processes with one id would be taken for one broker (protocol notes, Z20); the message says whose it is and what to do."""
    running.broker(OWN_ID)
    running.start()
    assert running.run is not None
    with pytest.raises(IdentityError, match=r"id 1000 is a broker's \(127.0.0.1:1\): choose an id that no broker has"):
        await running.run
    assert running.holder() is None


async def test_an_id_that_a_broker_has_by_the_time_the_place_is_free_is_refused(running: RunningProcess) -> None:
    """A standby may wait for months."""
    rival = running.takes(1001)
    running.start()
    await running.until(lambda: any("/brokers/ids/1001" in line for line in running.server.lines))
    running.broker(OWN_ID)
    rival.expire()
    assert running.run is not None
    with pytest.raises(IdentityError):
        await running.run
    assert running.holder() is None


async def test_an_id_that_brokers_may_be_given_is_refused(running: RunningProcess) -> None:
    """reserved.broker.max.id: ids above are handed out automatically."""
    running.told = BrokerSettings(Defaults(), 999)
    running.broker(1)
    running.start()
    assert running.run is not None
    with pytest.raises(IdentityError, match=r"1000 is over reserved.broker.max.id 999 of broker 1"):
        await running.run
    assert running.holder() is None


@pytest.mark.parametrize("setting", ["create.topic.policy.class.name", "alter.config.policy.class.name"])
async def test_a_policy_of_the_brokers_ends_the_controller(running: RunningProcess, setting: str) -> None:
    """ZkAdminManager runs these Java classes; the controller cannot, and must not serve as if there were none."""
    running.told = BrokerSettings(Defaults(), 1000, {setting: "com.example.Policy"})
    running.broker(1)
    running.start()
    assert running.run is not None
    with pytest.raises(PolicyError, match=rf"broker 1 sets {setting}=com.example.Policy.*--ignore-topic-policies"):
        await running.run
    assert running.holder() is None


async def test_a_policy_of_the_brokers_can_be_ignored(running: RunningProcess) -> None:
    """--ignore-topic-policies."""
    policies = {"create.topic.policy.class.name": "com.example.Policy"}
    running.told = BrokerSettings(Defaults(4, 2), 1000, policies)
    running.broker(1)
    running.start(ignore_topic_policies=True)
    await running.until_active()
    assert running.process.active is not None
    assert await running.process.active.known_defaults(60_000) == running.told.defaults


async def test_what_brokers_tell_of_their_settings_outlives_the_tenure(running: RunningProcess) -> None:
    """CreateTopics with the cluster's defaults must not mean others just because a tenure is young."""
    running.broker(9)
    running.broker(1)
    running.start()
    await running.until_active()
    assert running.process.active is not None
    assert running.told.defaults == await running.process.active.known_defaults(60_000)
    first = running.told.defaults
    running.told = BrokerSettings(Defaults(7, 7, delete_topic_enable=False), 1000)
    running.sessions[0].expire()
    await running.until(lambda: len(running.sessions) == 2)
    await running.until_active()

    assert running.process.active is not None
    assert await running.process.active.known_defaults(0) in {first, running.told.defaults}


def answer_in_turn(monkeypatch: pytest.MonkeyPatch, answers: list[BrokerSettings]) -> None:
    """Have brokers give these answers one after the other, the last one from then on."""

    async def changing(_broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(learning_module, "read_broker_settings", changing)


@pytest.mark.parametrize("entity", ["brokers/<default>", "brokers/1", None])
async def test_a_registration_or_a_notification_makes_the_controller_poll_at_once(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch, entity: str | None
) -> None:
    """DynamicBrokerConfig, and a broker that restarts with another file: a controller that is a broker has them by itself."""
    monkeypatch.setattr(learning_module, "NOTIFIED_POLL_DELAY_S", 0.0)
    monkeypatch.setattr(learning_module, "POLL_INTERVAL_S", NEVER_S)
    first, then = (
        running.told,
        BrokerSettings(Defaults(7, 3, topic_defaults={"retention.ms": TopicDefault("7", 3)}), 1000),
    )
    broker = running.broker(1)
    running.start()
    await running.until_active()
    learning = running.process._sessions.broker_settings
    await running.until(lambda: learning.defaults == first.defaults)
    answer_in_turn(monkeypatch, [then])
    if entity is None:
        broker.expire()
        running.broker(1)
    else:
        running.server.put(f"{paths.CONFIG_CHANGE_PREFIX}0000000001", encode_config_change(entity))
    await running.until(lambda: learning.defaults == then.defaults)

    assert running.process.active is not None
    assert await running.process.active.known_defaults(0) == then.defaults


async def test_a_change_is_found_however_late_a_broker_applies_it(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DynamicBrokerConfig: brokers apply a change some time after its notification, on a busy machine many polls later."""
    monkeypatch.setattr(learning_module, "NOTIFIED_POLL_DELAY_S", 0.0)
    monkeypatch.setattr(learning_module, "POLL_INTERVAL_S", 0.0)
    first, then = (
        running.told,
        BrokerSettings(Defaults(7, 3, topic_defaults={"retention.ms": TopicDefault("7", 3)}), 1000),
    )
    running.broker(1)
    running.start()
    await running.until_active()
    learning = running.process._sessions.broker_settings
    await running.until(lambda: learning.defaults == first.defaults)
    answer_in_turn(monkeypatch, [*[first] * MANY_POLLS, then])
    running.server.put(f"{paths.CONFIG_CHANGE_PREFIX}0000000001", encode_config_change("brokers/<default>"))
    await running.until(lambda: learning.defaults == then.defaults)

    assert running.process.active is not None
    assert await running.process.active.known_defaults(0) == then.defaults


async def test_a_poll_asks_the_broker_that_answered_last_and_another_one_only_where_it_fails(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers apply a change one after the other: settings that alternate with the broker would flap."""
    monkeypatch.setattr(learning_module, "POLL_INTERVAL_S", 0.0)
    for broker in (0, 1, 2):
        running.broker(broker)
    running.start()
    await running.until_active()
    learning = running.process._sessions.broker_settings
    await running.until(lambda: learning._deletion.keys() == {0, 1, 2})
    asked: list[int] = []
    failing: set[int] = set()

    async def recording(broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        asked.append(broker)
        await asyncio.sleep(0)
        if broker in failing:
            raise BrokerSettingsError("no answer")
        return running.told

    monkeypatch.setattr(learning_module, "read_broker_settings", recording)
    last = learning._answered_last
    assert last is not None
    await running.until(lambda: len(asked) >= MANY_POLLS)
    asked_before = set(asked)
    failing.add(last)
    await running.until(lambda: learning._answered_last != last)
    failing.clear()
    asked.clear()
    await running.until(lambda: len(asked) >= MANY_POLLS)

    assert asked_before == {last}
    assert set(asked) == {learning._answered_last}


async def test_callers_wait_while_the_cluster_is_read(running: RunningProcess) -> None:
    """Brokers send them here already; NOT_CONTROLLER would send them round in circles."""
    running.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    callers: list[asyncio.Task[None]] = []
    # Topics are read before the election as well, for the check of the controller's id; producer ids are not.
    running.server.before_reads.append(
        (
            paths.PRODUCER_ID_BLOCK,
            lambda: callers.append(asyncio.create_task(running.process._sessions.activation_gate.wait())),
        )
    )
    running.start()
    await running.until(lambda: bool(callers) and callers[0].done())

    assert running.process.active is not None
    await running.process._sessions.activation_gate.wait()


async def test_one_broker_that_forbids_deletions_is_enough(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each broker has `delete.topic.enable` in its own file; a name queued by hand waits until all of them were asked.

    With Kafka the setting of the broker that is controller counts, whichever that is.
    """
    last_is_asked = asyncio.Event()

    async def differing(broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        if broker == 2:
            await last_is_asked.wait()
        return BrokerSettings(Defaults(delete_topic_enable=broker == 1), 1000)

    monkeypatch.setattr(learning_module, "read_broker_settings", differing)
    running.server.put(paths.topic("orders"), b'{"partitions":{"0":[1]}}')
    running.server.put(paths.delete_topic("orders"))
    running.broker(1)
    running.broker(2)
    running.start()
    await running.until_active()
    assert running.process.active is not None
    cluster = running.process.active.cluster
    await running.until(lambda: running.process._sessions.broker_settings.defaults is not None)
    assert cluster.topic_deletion is TopicDeletion.UNKNOWN
    assert paths.delete_topic("orders") in running.server.znodes

    last_is_asked.set()
    await running.until(lambda: paths.delete_topic("orders") not in running.server.znodes)

    assert cluster.topic_deletion is TopicDeletion.DISABLED
    assert paths.topic("orders") in running.server.znodes
    defaults = await running.process.active.known_defaults(0)
    assert defaults is not None
    assert defaults.delete_topic_enable is False


async def test_a_name_queued_for_deletion_waits_while_no_broker_reports_the_setting(running: RunningProcess) -> None:
    """Broker 9 does not answer: the topic is served, the name stays, nothing is deleted."""
    running.server.put(paths.topic("orders"), b'{"partitions":{"0":[9]}}')
    running.server.put(paths.delete_topic("orders"))
    running.broker(9)
    running.start()
    await running.until_active()
    assert running.process.active is not None
    cluster = running.process.active.cluster
    await running.until(lambda: cluster.topic_deletion is TopicDeletion.NOT_REPORTED)
    await running.until(lambda: paths.partition_state("orders", 0) in running.server.znodes)

    assert not cluster.deletions["orders"].started
    assert paths.delete_topic("orders") in running.server.znodes
