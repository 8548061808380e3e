"""Settings of real brokers that decide whether and how a controller may serve them: listeners and policies."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from lab.downloads.jars import KAFKA_VERSION, java, kafka_jars
from lab.peers.cluster import kafka_cluster
from lab.peers.kafka import INTERNAL
from lab.peers.steward import StewardController
from lab.processes.folder import lab_folder
from lab.processes.http_get import http_get
from lab.processes.waiting import wait_until
from tests.integration.clusters import create_on, held_cluster
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka

POLICY = """
import java.util.Map;
import org.apache.kafka.server.policy.CreateTopicPolicy;

public class TestPolicy implements CreateTopicPolicy {
    public void configure(Map<String, ?> configs) {}
    public void validate(RequestMetadata metadata) {}
    public void close() {}
}
"""
WRONG_SETTINGS = 2


@pytest.fixture(scope="module")
def two() -> Iterator[Held]:
    """Two brokers under a Steward controller."""
    with held_cluster((1, 2)) as held:
        yield held


def unreachable(held: Held) -> list[int]:
    """Brokers that count as down because they lack a listener."""
    answer = http_get(held.controller.metrics_port, "/state")
    assert answer is not None
    found: list[int] = json.loads(answer.body)["unreachable_brokers"]
    return found


def test_a_real_broker_without_the_inter_broker_listener_leads_nothing(two: Held) -> None:
    """ControllerChannelManager.addNewBroker: no controller can send it requests, so it must not be elected.

    It is a replica of a partition that was assigned before it lost the listener.
    """
    third = two.cluster.add_broker(3)
    third.start()
    two.wait_until_known()
    create_on(two, "spread", [3, 1], [3, 2])
    third.stop()
    properties = two.cluster.folder / "broker-3.properties"
    properties.write_text(properties.read_text(encoding="utf-8").replace(INTERNAL, "OTHER"), encoding="utf-8")
    third.launch()
    wait_until(lambda: unreachable(two) == [3], timeout_s=PATIENCE_S, what="broker 3 counted as down")

    assert two.leaders("spread") == {0: 1, 1: 2}
    assert [two.state("spread", partition)["isr"] for partition in (0, 1)] == [[1], [2]]
    assert two.controller.metric("steward_controller_unreachable_brokers") == 1
    two.admin.create_topics([NewTopic("placed", num_partitions=6, replication_factor=1)])["placed"].result(PATIENCE_S)
    assert set(two.leaders("placed").values()) == {1, 2}
    wide = two.admin.create_topics([NewTopic("wide", num_partitions=1, replication_factor=3)])["wide"]
    with pytest.raises(KafkaException, match="Replication factor"):
        wide.result(PATIENCE_S)
    lines = [line for line in two.controller.process.log_text().splitlines() if "inter-broker listener" in line]
    assert len(lines) == 1


def compile_policy(folder: Path) -> None:
    """Compile the policy with the compiler of the brokers' Java."""
    source = folder / "TestPolicy.java"
    source.write_text(POLICY, encoding="utf-8")
    compiler = [java(), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    jars = ":".join(map(str, kafka_jars(KAFKA_VERSION).glob("*.jar")))
    subprocess.run([*compiler, "-cp", jars, "-d", str(folder), str(source)], check=True, capture_output=True)


def test_a_policy_of_real_brokers_ends_the_controller_unless_it_is_ignored(tmp_path: Path) -> None:
    """ZkAdminManager.validateTopicCreatePolicy runs a Java class; the process ends with the setting's and the class's name."""
    compile_policy(tmp_path)
    settings = {"create.topic.policy.class.name": "TestPolicy"}
    with (
        lab_folder() as folder,
        kafka_cluster((1,), start=False, chroot=CHROOT, folder=folder, settings=settings) as cluster,
    ):
        command = cluster.broker(1).process.command
        command[command.index("-cp") + 1] += f":{tmp_path}"
        cluster.start_brokers()
        strict = StewardController(cluster.zookeeper_connect, folder)
        lenient = StewardController(
            cluster.zookeeper_connect, folder, controller_id=999, arguments=["--ignore-topic-policies"]
        )
        try:
            strict.launch()
            assert strict.process.wait(timeout_s=PATIENCE_S) == WRONG_SETTINGS
            message = "broker 1 sets create.topic.policy.class.name=TestPolicy: the controller cannot run Java classes"
            assert message in strict.process.log_text()

            lenient.start()
            held = Held(cluster, lenient)
            held.wait_until_held()
            held.wait_until_known()
            create_on(held, "ignored", [1])
            vars(held).pop("admin", None)
        finally:
            strict.close()
            lenient.close()
