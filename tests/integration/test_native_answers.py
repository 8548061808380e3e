"""Answers of a native controller of Kafka 3.9 and of Steward to the same requests, from two small clusters."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_wire import ApiKey, Body, ErrorCode
from lab.peers import kafka_tools
from lab.peers.cluster import KafkaCluster, kafka_cluster
from lab.peers.live_brokers import alive
from lab.peers.steward import StewardController
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.integration.clusters import call
from tests.integration.conftest import PATIENCE_S

pytestmark = pytest.mark.kafka

BROKERS = (1, 2)
STEWARD_CHROOT, NATIVE_CHROOT = "/kafka/answers", "/kafka/native-answers"


@dataclass
class Pair:
    """A cluster under Steward and one under a native controller; broker 2 of both is down, and broker 1 controls the second."""

    steward: KafkaCluster
    native: KafkaCluster
    controller: StewardController

    def both(self, key: ApiKey, body: Body) -> tuple[Body, Body]:
        """Send one request to both controllers, at the same time."""
        addresses = (self.controller.address(), self.native.broker(1).address())
        with ThreadPoolExecutor(len(addresses)) as pool:
            steward, native = pool.map(lambda address: asyncio.run(call(address, key, body)), addresses)
        return steward, native


@pytest.fixture(scope="module")
def pair(zookeeper: ZooKeeperServer) -> Iterator[Pair]:
    """Both clusters, each with the topic `old` on brokers 1 and 2."""
    for chroot in (STEWARD_CHROOT, NATIVE_CHROOT):
        zookeeper.make_chroot(chroot)
    with (
        lab_folder() as folder,
        lab_folder() as other,
        kafka_cluster(BROKERS, start=False, zookeeper=zookeeper, chroot=STEWARD_CHROOT, folder=folder) as steward,
        kafka_cluster(BROKERS, start=False, zookeeper=zookeeper, chroot=NATIVE_CHROOT, folder=other) as native,
    ):
        controller = StewardController(steward.zookeeper_connect, folder)
        try:
            controller.start()
            steward.wait_for_controller(controller.controller_id)
            native.start_brokers([1])
            native.wait_for_controller(1)
            native.start_brokers([2])
            steward.start_brokers()
            steward.wait_until_known(controller.controller_id)
            native.wait_until_known()
            pair = Pair(steward, native, controller)
            for answer in pair.both(ApiKey.CREATE_TOPICS, creating({"old": [[1, 2]]})):
                assert answer["topics"][0]["error_code"] == ErrorCode.NONE
            for cluster in (steward, native):
                cluster.wait_until_in_sync("old")
                cluster.broker(2).kill()
            wait_until(
                lambda: all(2 not in alive(cluster.broker(1).address()) for cluster in (steward, native)),
                timeout_s=PATIENCE_S,
                what="broker 2 of both clusters down",
            )
            yield pair
        finally:
            controller.close()


def creating(topics: dict[str, list[list[int]]], timeout_ms: int = 30_000) -> Body:
    """A request to create topics on given brokers."""
    return {
        "topics": [
            {
                "name": name,
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": [{"partition_index": number, "broker_ids": ids} for number, ids in enumerate(lists)],
            }
            for name, lists in topics.items()
        ],
        "timeout_ms": timeout_ms,
    }


def codes(answer: Body, field: str) -> dict[str, int]:
    """Error codes by topic."""
    return {topic["name"]: topic["error_code"] for topic in answer[field]}


def test_a_topic_on_a_broker_that_is_down_is_created(pair: Pair) -> None:
    """ZkAdminManager.createTopics, DelayedCreatePartitions: without any live replica the answer is REQUEST_TIMED_OUT."""
    half = pair.both(ApiKey.CREATE_TOPICS, creating({"half": [[1, 2], [2, 1]]}))
    dark = pair.both(ApiKey.CREATE_TOPICS, creating({"dark": [[2]]}, timeout_ms=2_000))

    assert [codes(answer, "topics") for answer in half] == [{"half": ErrorCode.NONE}] * 2
    assert [codes(answer, "topics") for answer in dark] == [{"dark": ErrorCode.REQUEST_TIMED_OUT}] * 2
    for cluster in (pair.steward, pair.native):
        states = [cluster.partition_state("half", partition) for partition in (0, 1)]
        assert [(state["leader"], state["isr"]) for state in states if state is not None] == [(1, [1]), (1, [1])]
        assert cluster.assignment("dark") == {0: [2]}


def test_added_partitions_need_live_brokers(pair: Pair) -> None:
    """ZkAdminManager.createPartitions, unlike createTopics, asks for live brokers."""
    topics = [{"name": "old", "count": 2, "assignments": [{"broker_ids": [2, 1]}]}]
    answers = pair.both(ApiKey.CREATE_PARTITIONS, {"topics": topics, "timeout_ms": 30_000})

    assert [codes(answer, "results") for answer in answers] == [{"old": ErrorCode.INVALID_REPLICA_ASSIGNMENT}] * 2


def test_moves_are_refused_and_cancelled_with_the_same_codes(pair: Pair) -> None:
    """KafkaController.processApiPartitionReassignment, for partitions that exist and that do not."""
    moves: dict[tuple[str, int], list[int] | None] = {
        ("old", 0): None,
        ("old", 7): None,
        ("ghost", 0): None,
        ("ghost", 1): [1],
        ("ghost", 2): [1, 1],
        ("ghost", 3): [2],
    }
    body = {
        "topics": [
            {"name": topic, "partitions": [{"partition_index": number, "replicas": replicas}]}
            for (topic, number), replicas in moves.items()
        ],
        "timeout_ms": 30_000,
    }
    found = [
        {
            (topic["name"], partition["partition_index"]): partition["error_code"]
            for topic in answer["responses"]
            for partition in topic["partitions"]
        }
        for answer in pair.both(ApiKey.ALTER_PARTITION_REASSIGNMENTS, body)
    ]

    none, invalid = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.INVALID_REPLICA_ASSIGNMENT
    codes_of_moves = [none, none, none, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, invalid, invalid]
    assert found == [dict(zip(moves, codes_of_moves, strict=True))] * 2


def test_features_are_finalized_under_the_same_epoch(pair: Pair) -> None:
    """KIP-584: `/feature` is created by the first controller; brokers and Steward report its version as the epoch."""
    body = {"client_software_name": "tests", "client_software_version": "1"}
    steward, native = pair.both(ApiKey.API_VERSIONS, body)
    broker = asyncio.run(call(pair.steward.broker(1).address(), ApiKey.API_VERSIONS, body))

    assert [answer["finalized_features_epoch"] for answer in (steward, native, broker)] == [0, 0, 0]
    znodes = [cluster.zookeeper.read(f"{cluster.chroot}/feature") for cluster in (pair.steward, pair.native)]
    assert json.loads(znodes[0] or "") == json.loads(znodes[1] or "")


def test_kafka_topics_describes_as_with_a_native_controller(pair: Pair) -> None:
    """TopicCommand: without eligible leader replicas it prints N/A in both clusters.

    Java's client uses DescribeTopicPartitions if the node that it asks offers this, and Metadata otherwise (KIP-966).
    """
    software = {"client_software_name": "tests", "client_software_version": "1"}
    offered = [{api["api_key"] for api in answer["api_keys"]} for answer in pair.both(ApiKey.API_VERSIONS, software)]
    assert [ApiKey.DESCRIBE_TOPIC_PARTITIONS in keys for keys in offered] == [False, False]
    outputs = [
        kafka_tools.kafka_topics("--bootstrap-server", address, "--describe", "--topic", "old").stdout
        for address in (pair.controller.address(), pair.native.broker(1).address())
    ]
    lines = [[line for line in text.splitlines() if "Partition: 0" in line] for text in outputs]

    assert lines[0] == lines[1]
    assert "Elr: N/A\tLastKnownElr: N/A" in lines[0][0]


def test_a_plan_with_the_controllers_id_is_refused(pair: Pair, tmp_path: Path) -> None:
    """kafka-reassign-partitions: --generate plans with every listed node; --execute of such a plan is refused as a whole."""
    own = pair.controller.controller_id
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "old"}]}))
    server = ("--bootstrap-server", pair.steward.broker(1).address())
    generated = kafka_tools.kafka_reassign_partitions(
        *server, "--topics-to-move-json-file", str(topics), "--broker-list", f"1,{own}", "--generate"
    )
    plan.write_text(generated.stdout.strip().splitlines()[-1])
    assert str(own) in plan.read_text(), generated.stdout + generated.stderr
    executed = kafka_tools.kafka_reassign_partitions(*server, "--reassignment-json-file", str(plan), "--execute")

    assert executed.returncode != 0
    assert f"Node {own} is the controller and holds no data" in executed.stdout + executed.stderr
    assert pair.steward.assignment("old") == {0: [1, 2]}
