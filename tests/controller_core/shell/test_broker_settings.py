"""Broker settings that the controller reads before and during a term: the range of broker ids, policies, defaults.

Sources: protocol notes, Z6; active.Defaults.
"""

import asyncio

import pytest

from controller_core.model.settings import TopicDeletion
from controller_core.shell import broker_settings as broker_settings_module
from controller_core.shell.active import Defaults, TopicDefault
from controller_core.shell.broker_settings import BrokerSettingsReader
from controller_core.shell.brokers.describe_configs import BrokerSettings, BrokerSettingsError
from controller_core.shell.startup_checks import IdentityError, PolicyError
from kafka_node.security.brokers import BrokerSecurity
from kafka_zookeeper import paths
from kafka_zookeeper.formats.configs import encode_config_change
from tests.controller_core.shell.running_process import OWN_ID, RunningProcess

NEVER_S = 3_600.0
MANY_POLLS = 20
CHANGED = BrokerSettings(Defaults(7, 3, topic_defaults={"retention.ms": TopicDefault("7", 3)}), 1000)
"""Settings after a change; those before it are `RunningProcess.settings_reported`."""


async def test_the_id_of_a_registered_broker_is_refused(running: RunningProcess) -> None:
    """Clients and brokers would take both for one broker (protocol notes, Z20); the message names the broker and a remedy."""
    running.broker(OWN_ID)
    running.start()
    assert running.run is not None
    with pytest.raises(IdentityError, match=r"id 1000 is a broker's \(127.0.0.1:1\): choose an id that no broker has"):
        await running.run
    assert running.active_controller() is None


async def test_the_id_of_a_broker_that_registered_while_a_standby_waited_is_refused(running: RunningProcess) -> None:
    """A standby may wait for months."""
    rival = running.elect(1001)
    running.start()
    await running.until(lambda: any("/brokers/ids/1001" in line for line in running.server.lines))
    running.broker(OWN_ID)
    rival.expire()
    assert running.run is not None
    with pytest.raises(IdentityError):
        await running.run
    assert running.active_controller() is None


async def test_an_id_above_reserved_broker_max_id_is_refused(running: RunningProcess) -> None:
    """reserved.broker.max.id: brokers get ids above it automatically."""
    running.settings_reported = BrokerSettings(Defaults(), 999)
    running.broker(1)
    running.start()
    assert running.run is not None
    with pytest.raises(IdentityError, match=r"1000 is over reserved.broker.max.id 999 of broker 1"):
        await running.run
    assert running.active_controller() is None


@pytest.mark.parametrize("setting", ["create.topic.policy.class.name", "alter.config.policy.class.name"])
async def test_a_policy_of_the_brokers_ends_the_controller(running: RunningProcess, setting: str) -> None:
    """ZkAdminManager runs these Java classes; the controller cannot, and must not serve without them."""
    running.settings_reported = BrokerSettings(Defaults(), 1000, {setting: "com.example.Policy"})
    running.broker(1)
    running.start()
    assert running.run is not None
    with pytest.raises(PolicyError, match=rf"broker 1 sets {setting}=com.example.Policy.*--ignore-topic-policies"):
        await running.run
    assert running.active_controller() is None


async def test_a_policy_of_the_brokers_can_be_ignored(running: RunningProcess) -> None:
    """--ignore-topic-policies."""
    policies = {"create.topic.policy.class.name": "com.example.Policy"}
    running.settings_reported = BrokerSettings(Defaults(4, 2), 1000, policies)
    running.broker(1)
    running.start(ignore_topic_policies=True)
    await running.until_active()
    assert running.process.active is not None
    assert await running.process.active.known_defaults(60_000) == running.settings_reported.defaults


async def test_settings_of_brokers_outlive_the_term(running: RunningProcess) -> None:
    """CreateTopics with the cluster's defaults must not use other values at the start of a term."""
    running.broker(9)
    running.broker(1)
    running.start()
    await running.until_active()
    assert running.process.active is not None
    assert running.settings_reported.defaults == await running.process.active.known_defaults(60_000)
    first = running.settings_reported.defaults
    running.settings_reported = BrokerSettings(Defaults(7, 7, delete_topic_enable=False), 1000)
    running.sessions[0].expire()
    await running.until(lambda: len(running.sessions) == 2)
    await running.until_active()

    assert running.process.active is not None
    assert await running.process.active.known_defaults(0) in {first, running.settings_reported.defaults}


async def started_with_settings(running: RunningProcess) -> BrokerSettingsReader:
    """Start the process and wait until it has the reported settings."""
    running.start()
    await running.until_active()
    reader = running.process._sessions.broker_settings
    await running.until(lambda: reader.defaults == running.settings_reported.defaults)
    return reader


def set_answers(monkeypatch: pytest.MonkeyPatch, answers: list[BrokerSettings]) -> None:
    """Make brokers give these answers one after the other, and the last one from then on."""

    async def changing(_broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(broker_settings_module, "read_broker_settings", changing)


@pytest.mark.parametrize("entity", ["brokers/<default>", "brokers/1", None])
async def test_a_registration_or_a_notification_makes_the_controller_poll_at_once(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch, entity: str | None
) -> None:
    """DynamicBrokerConfig, and a broker that restarts with another file: a controller that is a broker has its own settings."""
    monkeypatch.setattr(broker_settings_module, "NOTIFIED_POLL_DELAY_S", 0.0)
    monkeypatch.setattr(broker_settings_module, "POLL_INTERVAL_S", NEVER_S)
    broker = running.broker(1)
    settings_reader = await started_with_settings(running)
    set_answers(monkeypatch, [CHANGED])
    if entity is None:
        broker.expire()
        running.broker(1)
    else:
        running.server.put(f"{paths.CONFIG_CHANGE_PREFIX}0000000001", encode_config_change(entity))
    await running.until(lambda: settings_reader.defaults == CHANGED.defaults)

    assert running.process.active is not None
    assert await running.process.active.known_defaults(0) == CHANGED.defaults


async def test_a_change_is_found_however_late_a_broker_applies_it(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DynamicBrokerConfig: brokers apply a change some time after its notification, on a busy machine many polls later."""
    monkeypatch.setattr(broker_settings_module, "NOTIFIED_POLL_DELAY_S", 0.0)
    monkeypatch.setattr(broker_settings_module, "POLL_INTERVAL_S", 0.0)
    running.broker(1)
    settings_reader = await started_with_settings(running)
    set_answers(monkeypatch, [*[running.settings_reported] * MANY_POLLS, CHANGED])
    running.server.put(f"{paths.CONFIG_CHANGE_PREFIX}0000000001", encode_config_change("brokers/<default>"))
    await running.until(lambda: settings_reader.defaults == CHANGED.defaults)

    assert running.process.active is not None
    assert await running.process.active.known_defaults(0) == CHANGED.defaults


async def test_a_poll_asks_the_broker_that_answered_last_and_others_only_if_it_fails(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers apply a change one after the other: settings would flap if the broker alternated."""
    monkeypatch.setattr(broker_settings_module, "POLL_INTERVAL_S", 0.0)
    for broker in (0, 1, 2):
        running.broker(broker)
    running.start()
    await running.until_active()
    settings_reader = running.process._sessions.broker_settings
    await running.until(lambda: settings_reader._deletion.keys() == {0, 1, 2})
    asked: list[int] = []
    failing: set[int] = set()

    async def recording(broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        asked.append(broker)
        await asyncio.sleep(0)
        if broker in failing:
            raise BrokerSettingsError("no answer")
        return running.settings_reported

    monkeypatch.setattr(broker_settings_module, "read_broker_settings", recording)
    last = settings_reader._answered_last
    assert last is not None
    await running.until(lambda: len(asked) >= MANY_POLLS)
    asked_before = set(asked)
    failing.add(last)
    await running.until(lambda: settings_reader._answered_last != last)
    failing.clear()
    asked.clear()
    await running.until(lambda: len(asked) >= MANY_POLLS)

    assert asked_before == {last}
    assert set(asked) == {settings_reader._answered_last}


async def test_callers_wait_while_the_cluster_is_loaded(running: RunningProcess) -> None:
    """Brokers name this process as the controller already; NOT_CONTROLLER would send callers in circles."""
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


async def test_one_broker_that_disables_topic_deletion_is_enough(
    running: RunningProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each broker has `delete.topic.enable` in its own file; a topic queued by another process waits until all brokers have been asked.

    In Kafka the setting of the broker that is the controller counts.
    """
    last_is_asked = asyncio.Event()

    async def differing(broker: int, _endpoint: object, _security: BrokerSecurity) -> BrokerSettings:
        if broker == 2:
            await last_is_asked.wait()
        return BrokerSettings(Defaults(delete_topic_enable=broker == 1), 1000)

    monkeypatch.setattr(broker_settings_module, "read_broker_settings", differing)
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


async def test_a_queued_deletion_waits_while_no_broker_reports_the_setting(running: RunningProcess) -> None:
    """Broker 9 does not answer: the topic is served, it stays queued, nothing is deleted."""
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
