"""The pages of docs/tasks: their commands do on Kafka 4.3 what the page describes, and the API server accepts the resources of all pages."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.kafka.replica_dirs import ReplicaDir, replica_dirs_of
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.reassignment import Partition
from lab.downloads.kube_binaries import kube_binaries
from lab.processes.waiting import wait_until
from tests.kafka_operator.end_to_end.test_end_to_end_kafka_4 import kafka
from tests.kafka_operator.live import PATIENCE_S, PLURALS, Namespace
from tests.kafka_operator.makers import raw_plan, raw_reassignment
from tests.kafka_operator.pages import DOCS, TASKS, resources, script
from tests.kafka_operator.stock import Stock

__all__ = ["kafka"]

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]

TOPIC = "orders"
POLL_S = 0.1

BOOTSTRAP = "kafka-1.example.org:9092"
"""The address in the pages; the test replaces it by that of the lab."""

Replicas = list[list[int]]


@pytest.fixture
def run(shop: Namespace, kafka: Stock, tmp_path: Path) -> Callable[[str], str]:
    """Carry out a page in the namespace of the test, as a user does in a shell; return its output."""
    settings = tmp_path / "kubeconfig"
    settings.write_bytes(shop.api.kubeconfig.read_bytes())
    kubectl = kube_binaries().kubectl
    subprocess.run(
        [kubectl, f"--kubeconfig={settings}", "config", "set-context", "--current", f"--namespace={shop.name}"],
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    path = os.pathsep.join([str(Path(kubectl).parent), str(Path(sys.executable).parent), os.environ["PATH"]])

    def carry_out(name: str) -> str:
        page = (TASKS / f"{name}.md").read_text(encoding="utf-8").replace(BOOTSTRAP, kafka.bootstrap.split(",")[0])
        done = subprocess.run(
            ["bash", "-c", script(page, tmp_path)],
            check=False,
            cwd=tmp_path,
            env={**os.environ, "KUBECONFIG": str(settings), "PATH": path},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return carry_out


@pytest.fixture
def orders(kafka: Stock) -> Iterator[None]:
    """Kafka topic `orders` of two partitions on brokers 1 and 2, with some data."""
    kafka.create(TOPIC, [[1, 2], [2, 1]])
    kafka.fill(TOPIC, 20)
    yield
    if kafka.exists(TOPIC):  # not deleted with a Topic
        kafka.delete(TOPIC)
    wait_until(lambda: not kafka.exists(TOPIC), timeout_s=PATIENCE_S, what="the topic of the pages is deleted")


def until_replicas(kafka: Stock, right: Callable[[Replicas], bool]) -> None:
    """Wait until all brokers know the replicas."""
    wait_until(
        lambda: right(kafka.replicas(TOPIC)),
        timeout_s=PATIENCE_S,
        what="the replicas of orders",
        context=lambda: str(kafka.replicas(TOPIC)),
    )


def test_a_cluster_is_connected_and_a_topic_is_created(
    shop: Namespace, kafka: Stock, run: Callable[[str], str]
) -> None:
    """Both pages begin with nothing but the operator."""
    assert "main" in run("connect-a-cluster")
    assert TOPIC in run("create-a-topic")

    wait_until(lambda: len(kafka.replicas(TOPIC)) == 4, timeout_s=PATIENCE_S, what="four partitions")
    assert kafka.config(TOPIC) == {"retention.ms": "3600000"}
    shop.delete("Topic", TOPIC)
    wait_until(lambda: not kafka.exists(TOPIC), timeout_s=PATIENCE_S, what="the topic is deleted with its resource")


@pytest.mark.shows("F11", "F18", "F40")
@pytest.mark.usefixtures("orders")
def test_partitions_are_moved_and_moved_back(shop: Namespace, kafka: Stock, run: Callable[[str], str]) -> None:
    """The page ends with the rollback."""
    run("move-partitions")

    assert shop.status("Reassignment", "orders-to-2-and-3")["state"] == "RolledBack"
    until_replicas(kafka, lambda found: found == [[1, 2], [2, 1]])


@pytest.mark.shows("F10", "F12")
@pytest.mark.soak("kafka_operator/end_to_end/test_pages_kafka_4.py::test_partitions_are_moved_and_moved_back")
@pytest.mark.usefixtures("orders")
def test_a_broker_is_replaced(shop: Namespace, kafka: Stock, run: Callable[[str], str]) -> None:
    """The goal is proposed, approved by its digest and reached: broker 3 had replicas, and has none."""
    shop.apply(raw_reassignment(plan=raw_plan(TOPIC, p0=[2, 3], p1=[3, 1])))
    shop.until("Reassignment", "move", "True", "Completed")

    output = run("replace-a-broker")

    assert "bytesToMove" in output
    until_replicas(kafka, lambda found: all(3 not in replicas for replicas in found))


@pytest.mark.shows("F44")
@pytest.mark.usefixtures("orders")
async def test_log_directories_are_balanced(kafka: Stock, run: Callable[[str], str]) -> None:
    """All logs of the topic are in the fuller directory of each broker at first."""
    await asyncio.to_thread(kafka.fill, TOPIC, 200)
    admin = KafkaAdmin(kafka.bootstrap.split(","), KafkaMetrics())
    names = [Partition(TOPIC, index) for index in range(2)]
    fuller: dict[int, str] = {}
    for broker, held in (await admin.describe_replica_dirs((1, 2), None)).items():
        assert not isinstance(held, Failure)
        fuller[broker] = max(held, key=lambda one: sum(one.logs.values())).directory.path
    await admin.move_log_dirs({broker: dict.fromkeys(names, path) for broker, path in fuller.items()})
    expected = {name: {broker: ReplicaDir(path) for broker, path in fuller.items()} for name in names}
    async with asyncio.timeout(PATIENCE_S):
        while replica_dirs_of(await admin.describe_replica_dirs((1, 2), names)) != expected:  # noqa: ASYNC110 - brokers send no event
            await asyncio.sleep(POLL_S)

    output = await asyncio.to_thread(run, "balance-log-directories")

    found = replica_dirs_of(await admin.describe_replica_dirs((1, 2), names))
    await admin.close()
    assert '"logDirs":' in output
    assert all(any(found[name][broker].path != path for name in names) for broker, path in fuller.items())


@pytest.mark.shows("F5", "F27")
@pytest.mark.soak("kafka_operator/end_to_end/test_pages_kafka_4.py::test_a_change_is_previewed_and_then_applied")
@pytest.mark.usefixtures("orders")
def test_topics_are_imported_and_get_another_replica(shop: Namespace, kafka: Stock, run: Callable[[str], str]) -> None:
    """An import changes nothing; then three replicas are declared."""
    run("import-topics")
    assert shop.get("Topic", TOPIC) is not None
    until_replicas(kafka, lambda found: found == [[1, 2], [2, 1]])

    run("change-a-replication-factor")

    until_replicas(kafka, lambda found: [sorted(replicas) for replicas in found] == [[1, 2, 3]] * 2)


@pytest.mark.shows("F9")
@pytest.mark.usefixtures("orders")
def test_a_change_is_previewed_and_then_applied(kafka: Stock, run: Callable[[str], str]) -> None:
    """The page shows the drift before anything changes."""
    output = run("preview-a-change")

    assert '"field":"partitions"' in output
    wait_until(lambda: len(kafka.replicas(TOPIC)) == 4, timeout_s=PATIENCE_S, what="the preview is applied")


@pytest.mark.shows("F35", "F40")
@pytest.mark.usefixtures("orders")
def test_leaders_are_elected(shop: Namespace, run: Callable[[str], str]) -> None:
    """The preferred leader of partition 0 becomes broker 2, without a move; the Election makes it the leader."""
    shop.apply(raw_reassignment(plan=raw_plan(TOPIC, p0=[2, 1])))
    shop.until("Reassignment", "move", "True", "Completed")

    run("elect-leaders")

    assert shop.status("Election", "orders-preferred")["counts"]["elected"] == 1


def test_the_api_server_accepts_the_resources_of_all_pages(shop: Namespace) -> None:
    """Strictly: an unknown field, and a value that a rule of the CRD rejects, are errors."""
    found = [
        (str(path.relative_to(DOCS)), raw)
        for path in sorted(DOCS.rglob("*.md"))
        for raw in resources(path.read_text(encoding="utf-8"))
        if raw["kind"] in PLURALS
    ]
    names = {path for path, _ in found}

    assert [(path, refusal) for path, raw in found if (refusal := shop.refusal(raw))] == []
    assert names >= {"clusters.md", "elections.md", "operations.md", "reassignments.md", "topics.md"}
    assert {path for path in names if path.startswith("tasks/")} == {
        f"tasks/{path.name}" for path in TASKS.iterdir() if path.stem not in WITHOUT_RESOURCES
    }


WITHOUT_RESOURCES = {"drain-a-node", "import-topics", "scale-brokers"}
