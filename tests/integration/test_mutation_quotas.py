"""controller_mutation_rate with Kafka's own tools, answered alike by Steward and by a native controller (KIP-599)."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from lab.peers import kafka_tools
from lab.processes.waiting import wait_until
from tests.integration.clusters import alter_quota, held_cluster
from tests.integration.conftest import PATIENCE_S, Held

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

TOOLS_CLIENT_ID = "adminclient-1"
"""Default client id of Kafka's tools."""
RATE, PARTITIONS = 1.0, 100
"""After the creation, requests are refused for 89 s: several times what the other tools, which run side by side, take on a busy machine."""
NATIVE_COMMANDS = 1
"""Refused tools that are compared. A broker mutes the connection of a refused tool for the time that is left, and now and then the tool
waits for it at its end. By then the quota is there again, so that only one refusal is certain."""


@pytest.fixture(scope="module")
def one() -> Iterator[Held]:
    """One broker under a Steward controller."""
    with held_cluster((1,)) as held:
        yield held


def set_quota(held: Held, rate: float | None) -> None:
    """Set or remove the quota of the tools' client id, at the active controller."""
    native = held.cluster.brokers.get(held.cluster.controller_id() or -1)
    address = held.controller.address() if native is None else native.address()
    asyncio.run(alter_quota(address, {"client-id": TOOLS_CLIENT_ID}, "controller_mutation_rate", rate))


def refused_commands(topic: str) -> tuple[tuple[str, ...], ...]:
    """Return the options of kafka-topics that create, extend and delete."""
    return (
        ("--create", "--topic", f"{topic}-more"),
        ("--alter", "--topic", topic, "--partitions", str(PARTITIONS + 1)),
        ("--delete", "--topic", topic),
    )


def answer(held: Held, topic: str, arguments: tuple[str, ...]) -> tuple[int, str]:
    """Run kafka-topics; returns its exit code and first line."""
    done = kafka_tools.kafka_topics("--bootstrap-server", held.cluster.bootstrap(), *arguments)
    message = (line for line in done.stdout.splitlines() if "WARNING" not in line)
    return done.returncode, next(message, "").replace(topic, "TOPIC")


def conversation(held: Held, topic: str, commands: int) -> list[tuple[int, str]]:
    """Use up the quota by one creation, then run the first `commands` at the same time; returns all answers."""
    set_quota(held, RATE)
    created = answer(held, topic, ("--create", "--topic", topic, "--partitions", str(PARTITIONS)))
    with ThreadPoolExecutor() as pool:
        refused = list(pool.map(partial(answer, held, topic), refused_commands(topic)[:commands]))
    set_quota(held, None)
    return [created, *refused]


def test_kafkas_tools_are_refused_over_the_quota_as_by_a_native_controller(one: Held) -> None:
    """ControllerMutationQuotaManager, ZkAdminManager: the same exit codes and messages from both controllers."""
    answers = conversation(one, "ours", len(refused_commands("ours")))
    assert sorted(one.cluster.zookeeper.client.get_children("/kafka/steward/brokers/topics")) == ["ours"]
    one.controller.stop()
    wait_until(lambda: one.cluster.controller_id() == 1, timeout_s=PATIENCE_S, what="a native controller")
    theirs = conversation(one, "theirs", NATIVE_COMMANDS)

    assert theirs == answers[: 1 + NATIVE_COMMANDS]
    assert [code for code, _ in answers] == [0, 1, 1, 1]
    assert answers[0][1] == "Created topic TOPIC."
    assert all("The throttling quota has been exceeded." in message for _, message in answers[1:])
