"""controller_mutation_rate with Kafka's own tools, answered alike by Steward and by a native controller (KIP-599)."""

from collections.abc import Iterator

import pytest

from lab import tools
from lab.waiting import wait_until
from tests.integration.clusters import held_cluster
from tests.integration.conftest import PATIENCE_S, Held

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

TOOLS_CLIENT_ID = "adminclient-1"
"""Default client id of Kafka's tools."""
RATE, PARTITIONS = "1", 60
"""After the creation, requests are refused for 49 s: longer than the other tools take on a busy machine."""
ALL_COMMANDS, NATIVE_COMMANDS = 4, 2
"""A broker mutes the connection of a refused tool for that time, and now and then the tool waits for it at its end. By then the quota
is there again, so that only one refusal is certain."""
"""The tokens of the burst are used up by one partition; a bucket of -9.5 tokens is back at 0 after three minutes."""


@pytest.fixture(scope="module")
def one() -> Iterator[Held]:
    """One broker under a Steward controller."""
    with held_cluster((1,)) as held:
        yield held


def set_quota(held: Held, *change: str) -> None:
    """Change the quota of the tools' client id."""
    entity = ("--alter", "--entity-type", "clients", "--entity-name", TOOLS_CLIENT_ID)
    done = tools.kafka_configs("--bootstrap-server", held.cluster.bootstrap(), *entity, *change)
    assert done.returncode == 0, done.stdout + done.stderr


def conversation(held: Held, topic: str, commands: int) -> list[tuple[int, str]]:
    """Use up the quota, and be refused; returns exit codes and first lines of the first commands."""
    set_quota(held, "--add-config", f"controller_mutation_rate={RATE}")
    answers = []
    for arguments in (
        ("--create", "--topic", topic, "--partitions", str(PARTITIONS)),
        ("--create", "--topic", f"{topic}-more"),
        ("--alter", "--topic", topic, "--partitions", str(PARTITIONS + 1)),
        ("--delete", "--topic", topic),
    )[:commands]:
        done = tools.kafka_topics("--bootstrap-server", held.cluster.bootstrap(), *arguments)
        words = (line for line in done.stdout.splitlines() if "WARNING" not in line)
        answers.append((done.returncode, next(words, "").replace(topic, "TOPIC")))
    set_quota(held, "--delete-config", "controller_mutation_rate")
    return answers


def test_kafkas_tools_are_refused_over_the_quota_as_by_a_native_controller(one: Held) -> None:
    """ControllerMutationQuotaManager, ZkAdminManager: the same exit codes and messages from both controllers."""
    answers = conversation(one, "ours", ALL_COMMANDS)
    assert sorted(one.cluster.zookeeper.client.get_children("/kafka/steward/brokers/topics")) == ["ours"]
    one.controller.stop()
    wait_until(lambda: one.cluster.controller_id() == 1, timeout_s=PATIENCE_S, what="a native controller")
    theirs = conversation(one, "theirs", NATIVE_COMMANDS)

    assert theirs == answers[:NATIVE_COMMANDS]
    assert [code for code, _ in answers] == [0, 1, 1, 1]
    assert answers[0][1] == "Created topic TOPIC."
    assert all("The throttling quota has been exceeded." in words for _, words in answers[1:])
