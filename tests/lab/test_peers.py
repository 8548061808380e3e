"""The real peers: their start, faults and recovery, as tests and the demo need them."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.cluster import KafkaCluster
from lab.cluster import kafka_cluster as new_kafka_cluster
from lab.jars import kafka_jars
from lab.kubernetes import OPERATOR, KubernetesApi
from lab.tools import kafka_leader_election, kafka_reassign_partitions, kafka_topics
from lab.traffic import Traffic
from lab.waiting import wait_until
from lab.zookeeper import ZooKeeperServer, zookeeper_server

pytestmark = pytest.mark.timeout(240)


@pytest.mark.zookeeper
def test_zookeeper_keeps_its_port_and_data_over_a_kill(tmp_path: Path) -> None:
    """A restarted server is the same server to its clients."""
    with zookeeper_server(tmp_path) as server:
        connect = server.make_chroot("/kept/here")
        server.kill()
        server.start()

        assert f"127.0.0.1:{server.port}/kept/here" == connect
        assert server.read("/kept/here") is not None
        assert server.read("/kept/elsewhere") is None


@pytest.mark.zookeeper
def test_tests_share_a_server_under_chroots_of_their_own(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """The session's server is started once."""
    assert [] == zookeeper.client.get_children(chroot)


@pytest.fixture(scope="module")
def breakable() -> Iterator[KafkaCluster]:
    """A cluster whose brokers may be stopped and killed."""
    with new_kafka_cluster((1, 2, 3), chroot="/breakable", racks={1: "a", 2: "b", 3: "c"}) as cluster:
        cluster.wait_for_controller()
        made = kafka_topics(
            "--bootstrap-server", cluster.bootstrap(), "--create", "--topic", "load", "--partitions", "3",
            "--replication-factor", "3",
        )  # fmt: skip
        assert "Created topic load.\n" == made.stdout, made.stderr
        yield cluster


@pytest.mark.kafka
def test_brokers_register_their_listeners_and_racks_under_the_chroot(breakable: KafkaCluster) -> None:
    """Two listeners: INTERNAL for brokers, CLIENT for clients."""
    broker = breakable.broker(2)
    data = breakable.zookeeper.read("/breakable/brokers/ids/2")
    assert data is not None
    registration = json.loads(data)

    endpoints = [f"INTERNAL://{broker.address('INTERNAL')}", f"CLIENT://{broker.address('CLIENT')}"]
    assert endpoints == registration["endpoints"]
    assert "b" == registration["rack"]


@pytest.mark.kafka
def test_load_over_a_killed_and_restarted_broker_loses_nothing(breakable: KafkaCluster) -> None:
    """The load with Kafka's own controller, the reference for Steward's. A killed broker's start waits for its session's end."""
    with Traffic(breakable.bootstrap(), "load") as traffic:
        breakable.broker(1).kill()
        assert breakable.broker(1).registered
        traffic.wait_for_acks(100)
        breakable.broker(1).start()
        traffic.wait_for_acks(100)
        report = traffic.stop()

    assert report.ok, report
    assert report.acked == report.read_back > 200
    assert (0, 0) == (report.duplicates, report.out_of_order)
    assert report.consumed


@pytest.mark.kafka
def test_a_stopped_broker_deregisters_and_comes_back_on_its_ports(breakable: KafkaCluster) -> None:
    """SIGTERM is a controlled shutdown; the JVM ends with 128 + 15."""
    broker = breakable.broker(3)
    before = broker.address()

    assert 143 == broker.stop()
    assert not broker.registered
    broker.start()
    assert before == broker.address()


@pytest.mark.kafka
def test_a_frozen_broker_loses_its_session_and_registers_again_when_thawed(breakable: KafkaCluster) -> None:
    """SIGSTOP past the session's time-out."""
    broker = breakable.broker(2)
    broker.pause()
    broker.wait_until_deregistered()
    broker.resume()
    broker.wait_until_ready()

    assert broker.process.running


@pytest.mark.kafka
def test_kafkas_own_tools_run_from_the_jars(breakable: KafkaCluster, tmp_path: Path) -> None:
    """Topics, moves and elections, as an administrator does them."""
    bootstrap = ("--bootstrap-server", breakable.bootstrap())
    plan = tmp_path / "plan.json"
    move = {"topic": "load", "partition": 0, "replicas": [2, 1, 3]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))

    breakable.wait_until_in_sync("load")  # an election takes no replica outside of the ISR
    described = kafka_topics(*bootstrap, "--describe", "--topic", "load")
    moved = kafka_reassign_partitions(*bootstrap, "--reassignment-json-file", str(plan), "--execute")
    elected = kafka_leader_election(*bootstrap, "--election-type", "preferred", "--all-topic-partitions")

    assert (0, 0, 0) == (described.returncode, moved.returncode, elected.returncode), (moved.stderr, elected.stderr)
    assert 3 == described.stdout.count("Partition: ")
    assert "Successfully started partition reassignment for load-0" in moved.stdout
    assert [2, 1, 3] == breakable.assignment("load")[0]


@pytest.mark.kafka
def test_a_failed_tool_answers_with_its_exit_code_and_words(breakable: KafkaCluster) -> None:
    """A failure of a tool is an answer, not an error of the lab."""
    failed = kafka_topics("--bootstrap-server", breakable.bootstrap(), "--describe", "--topic", "none")

    assert 1 == failed.returncode
    assert "does not exist as expected" in failed.stdout + failed.stderr


@pytest.mark.kafka
def test_brokers_speak_as_an_older_version_when_told_to() -> None:
    """Below 2.7 brokers write the ISR to ZooKeeper themselves; the controller must support both."""
    with new_kafka_cluster((1,), inter_broker_protocol_version="2.6") as cluster:
        data = cluster.zookeeper.read("/brokers/ids/1")

    assert data is not None
    assert 4 == json.loads(data)["version"]


@pytest.mark.kafka
def test_a_cluster_that_started_is_one_that_its_controller_has_spoken_to() -> None:
    """A registered broker may not know the others yet; a client's request for a topic would then time out after a minute."""
    with zookeeper_server() as server:
        server.client.create("/controller", b'{"version": 2, "brokerid": 99, "timestamp": "1"}')

        def elect_when_up() -> None:
            wait_until(lambda: server.read("/brokers/ids/1") is not None, timeout_s=60, what="the broker registered")
            time.sleep(1)
            server.client.delete("/controller")

        with ThreadPoolExecutor(1) as pool:
            elected = pool.submit(elect_when_up)
            with new_kafka_cluster((1,), zookeeper=server) as cluster:
                elected.result(0)
                admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
                assert admin.create_topics([NewTopic("at-once", 1, 1)])["at-once"].result(60) is None


@pytest.mark.java
def test_jars_hold_the_broker_zookeeper_and_the_tools() -> None:
    """One folder for all of Kafka's programs."""
    names = {path.name.rpartition("-")[0] for path in kafka_jars().iterdir()}

    assert {"kafka_2.13", "kafka-clients", "kafka-tools", "zookeeper", "slf4j-reload4j"} <= names


@pytest.mark.kubernetes
def test_the_api_serves_over_tls_and_obeys_rbac(kubernetes_api: KubernetesApi) -> None:
    """The admin has all rights, a user without a role none."""
    assert "namespace/default" in kubernetes_api.kubectl("get", "namespaces", "-o", "name", check=True).stdout

    refused = kubernetes_api.kubectl("get", "namespaces", user=OPERATOR)

    assert 1 == refused.returncode
    assert 'User "operator" cannot list resource "namespaces"' in refused.stderr


@pytest.mark.kubernetes
def test_objects_survive_a_killed_api_server(tmp_path: Path) -> None:
    """An operator meets restarts of the API server; etcd keeps the objects."""
    from lab.kubernetes import kubernetes_api as new_kubernetes_api

    with new_kubernetes_api(tmp_path) as api:
        api.kubectl("create", "configmap", "kept", check=True)
        api.kill()
        assert api.get("/readyz") is None
        api.start()

        assert "configmap/kept\n" == api.kubectl("get", "configmap", "kept", "-o", "name", check=True).stdout
