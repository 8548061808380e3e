"""Stray logs on brokers: real brokers, real ZooKeeper, a native controller in between."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError

from lab.checks.traffic import Traffic
from lab.processes.http_get import http_get
from lab.processes.waiting import wait_until
from tests.integration.clusters import create_on, on
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

REFUSED = "steward_controller_refused_replicas"
BLOCKED = "kafka_controller_kafkacontroller_topicsineligibletodeletecount"
SURVEY_S = 180.0
"""A generous limit for two lists of each broker's logs, 30 s apart."""


@pytest.fixture(autouse=True)
def broker_2_is_back(held: Held) -> Iterator[None]:
    """Leave every broker running, whatever the result of a test."""
    held.wait_until_held()
    yield
    if not held.cluster.broker(2).registered:
        held.cluster.broker(2).restart()
    if not held.controller.ready:
        held.controller.start()
    held.wait_until_known()


def logs_of(held: Held, broker: int, topic: str) -> list[str]:
    """List the folders of a topic's logs on a broker; a deleted log is renamed at once."""
    return sorted(found.name for found in held.cluster.broker(broker).data_folder.glob(f"{topic}-?"))


def has_topic_id(held: Held, broker: int, topic: str) -> bool:
    """Whether a log and its topic id are on a broker's disk: Kafka writes the id a moment later, and accepts a log without one."""
    path = held.cluster.broker(broker).data_folder / f"{topic}-0" / "partition.metadata"
    return path.exists() and path.stat().st_size > 0


def leave_log_on_2(held: Held, topic: str) -> None:
    """Move a partition from 1 and 2 to 1 and 3 while 2 is down, and request the deletion of its topic."""
    create_on(held, topic, [1, 2])
    wait_until(lambda: has_topic_id(held, 2, topic), timeout_s=PATIENCE_S, what=f"the log of {topic} with its topic id")
    held.cluster.broker(2).kill()
    held.cluster.broker(2).wait_until_deregistered()
    wait_until(
        lambda: is_move_requested(held, {TopicPartition(topic, 0): [1, 3]}), timeout_s=PATIENCE_S, what="a controller"
    )
    wait_until(lambda: held.cluster.assignment(topic) == {0: [1, 3]}, timeout_s=PATIENCE_S, what="the move")
    held.admin.delete_topics([topic], operation_timeout=1)
    wait_until(lambda: held.controller.metric(BLOCKED) == 1, timeout_s=PATIENCE_S, what="the deletion waiting")
    assert topic in held.topics()


def is_move_requested(held: Held, moves: dict[TopicPartition, list[int]]) -> bool:
    """Request moves; False if the client used the broker that is down, and has to retry."""
    try:
        admin = KafkaAdminClient(bootstrap_servers=held.cluster.broker(1).address())
    except KafkaError:
        return False
    try:
        admin.alter_partition_reassignments(moves)
    except KafkaError:
        return False
    finally:
        admin.close()
    return True


def unregister(held: Held, broker: int) -> None:
    """Run the unregister command, with the address of any broker."""
    command = ["-m", "steward", "controller", "unregister-broker", str(broker)]
    bootstrap = ["--bootstrap-server", held.cluster.broker(1).address()]
    done = subprocess.run(
        [sys.executable, *command, *bootstrap], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr


def wait_until_removed(held: Held, topic: str) -> None:
    """Wait until a topic is removed."""
    wait_until(lambda: topic not in held.topics(), timeout_s=PATIENCE_S, what=f"{topic} removed")


def assert_produces(held: Held, topic: str) -> None:
    """Assert that a producer with acks=all succeeds."""
    with Traffic(held.cluster.bootstrap(), topic) as traffic:
        traffic.wait_for_acks(40)
        report = traffic.stop()
    assert report.ok, report.summary()


def wait_until_isr(held: Held, topic: str, isr: Sequence[int], *, timeout_s: float = PATIENCE_S) -> None:
    """Wait until exactly these replicas are in sync."""
    wait_until(
        lambda: sorted(held.state(topic, 0)["isr"]) == sorted(isr),
        timeout_s=timeout_s,
        what=f"ISR {isr} of {topic}",
        context=lambda: str(held.state(topic, 0)),
    )


@pytest.mark.shows("C10")
def test_a_new_topic_does_not_find_the_log_of_its_predecessor(held: Held) -> None:
    """C10. The deletion waits for the broker that a partition left while it was down; afterwards the name is free."""
    leave_log_on_2(held, "strayed")

    held.cluster.broker(2).restart()
    wait_until_removed(held, "strayed")
    assert logs_of(held, 2, "strayed") == []

    create_on(held, "strayed", [2, 3])
    assert held.state("strayed", 0)["leader"] == 2
    assert_produces(held, "strayed")


@pytest.mark.soak(
    "controller_core/zookeeper_mode/test_stray_logs.py::test_the_log_of_a_topic_that_was_deleted_in_this_term_is_replaced"
)
def test_a_log_of_a_deleted_topic_is_replaced(held: Held) -> None:
    """ReplicaManager: INCONSISTENT_TOPIC_ID. The broker was unregistered, returns nevertheless, and gets a replica of the new topic."""
    leave_log_on_2(held, "replaced")
    unregister(held, 2)
    wait_until_removed(held, "replaced")
    held.cluster.broker(2).restart()
    held.wait_until_known()

    create_on(held, "replaced", [2, 3])

    # Acknowledged by all in-sync replicas: either broker 2 has the new log, or it is out of the ISR until it has.
    assert_produces(held, "replaced")
    wait_until_isr(held, "replaced", [2, 3])
    wait_until(lambda: held.controller.metric(REFUSED) == 0, timeout_s=PATIENCE_S, what="no refused replica")


def test_a_partition_that_a_broker_refuses_is_led_by_another_replica(held: Held) -> None:
    """INCONSISTENT_TOPIC_ID, KIP-112. A controller without a record of the old log keeps the log; the other replica serves clients."""
    leave_log_on_2(held, "refused")
    unregister(held, 2)
    wait_until_removed(held, "refused")
    held.controller.kill()
    held.controller.start()
    held.wait_until_held()
    held.cluster.broker(2).restart()
    held.wait_until_known()

    held.admin.create_topics([on("refused", [2, 3])])["refused"].result(PATIENCE_S)

    wait_until_isr(held, "refused", [3])
    assert held.state("refused", 0)["leader"] == 3
    assert held.controller.metric(REFUSED) == 1
    answer = http_get(held.controller.metrics_port, "/state")
    assert answer is not None
    listed = json.loads(answer.body)["refused_replicas"]["listed"]
    assert listed == [{"partition": "refused-0", "broker": 2, "error": "INCONSISTENT_TOPIC_ID"}]
    assert_produces(held, "refused")
    assert logs_of(held, 2, "refused") == ["refused-0"]

    # A deletion deletes the old log as well, so that the name is free.
    held.admin.delete_topics(["refused"])["refused"].result(PATIENCE_S)
    wait_until_removed(held, "refused")
    create_on(held, "refused", [2, 3])
    assert_produces(held, "refused")


@pytest.mark.shows("C2")
def test_unfinished_work_of_a_relieved_native_controller_is_completed(held: Held) -> None:
    """C2. ADR 3: it wrote an assignment, and was relieved before it shrank the ISR and deleted the log outside it.

    These are steps U1 and U3 of KafkaController.updateCurrentReassignment, for a changed or cancelled move.
    """
    create_on(held, "half-done", [3, 1, 2], [1, 2, 3])
    create_on(held, "untouched", [3, 1])
    held.controller.kill()
    wait_until(
        lambda: held.cluster.controller_id() in held.cluster.brokers, timeout_s=PATIENCE_S, what="a native controller"
    )
    path = f"{CHROOT}/brokers/topics/half-done"
    written = json.loads(held.cluster.zookeeper.read(path) or b"")
    written["partitions"] = {"0": [1, 2], "1": [1, 2]}
    held.cluster.zookeeper.client.set(path, json.dumps(written).encode())

    held.controller.start()
    held.wait_until_held()

    for partition in (0, 1):
        wait_until(
            lambda partition=partition: sorted(held.state("half-done", partition)["isr"]) == [1, 2],
            timeout_s=PATIENCE_S,
            what="an ISR within the replicas",
        )
    assert held.state("half-done", 0)["leader"] in {1, 2}
    wait_until(
        lambda: logs_of(held, 3, "half-done") == [],
        timeout_s=SURVEY_S,
        what="the deletion of the logs outside the assignment",
    )
    assert logs_of(held, 3, "untouched") == ["untouched-0"]
    assert [logs_of(held, broker, "half-done") for broker in (1, 2)] == [["half-done-0", "half-done-1"]] * 2
    assert_produces(held, "half-done")
