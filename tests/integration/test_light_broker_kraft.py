"""A light broker next to a Kafka 4.3 broker in a cluster with KRaft controllers, Steward's and Kafka's."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafka_wire import ApiKey
from lab.peers.light_broker import KRaftLightBroker
from lab.peers.live_brokers import alive
from lab.peers.steward import steward_command, steward_environment
from lab.processes.waiting import wait_until
from tests.integration.clusters import call
from tests.integration.few_records import produce, read
from tests.integration.light_brokers_kraft import (
    KAFKA,
    LIGHT,
    PATIENCE_S,
    RACKS,
    Mixed,
    kafka_controller,
    light_settings,
    under_kafka,
    under_steward,
)

pytestmark = pytest.mark.kafka

VALUES = [f"value {number}".encode() for number in range(50)]
THROTTLED_S = 1.0
"""Time for which a throttled replica must get nothing more: several fetches long."""
CLUSTERS = {"steward": under_steward, "kafka": under_kafka}


@pytest.fixture(scope="module", params=CLUSTERS)
def one(request: pytest.FixtureRequest) -> Iterator[Mixed]:
    """A cluster under each kind of controller."""
    with CLUSTERS[request.param]() as made:
        yield made


def test_both_brokers_are_listed_and_either_one_represents_the_controller(one: Mixed) -> None:
    """Clients send the controller's requests to a broker, which forwards them (KIP-590). Kafka's broker names one of both at random."""
    metadata = one.admin(one.light.address).list_topics(timeout=PATIENCE_S)

    assert set(metadata.brokers) == {KAFKA, LIGHT}
    assert metadata.controller_id in {KAFKA, LIGHT}


@pytest.mark.shows("F70")
def test_a_client_produces_to_a_light_broker_and_reads_from_it(one: Mixed) -> None:
    """The metadata log makes it the leader; AllocateProducerIds gives the idempotent producer its id."""
    one.create("orders", [LIGHT])

    produce(one.bootstrap, "orders", VALUES)

    assert read(one.light.address, "orders", len(VALUES)) == VALUES


@pytest.mark.shows("F70")
def test_admin_requests_are_forwarded_to_the_controller(one: Mixed) -> None:
    """Configs, partitions and quorum, through an Envelope; the config then applies on the light broker."""
    one.create("limited", [LIGHT], retention_ms="7200000")
    admin = one.admin(one.light.address)
    change = ConfigEntry("max.message.bytes", "2048", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "limited", incremental_configs=[change])

    admin.incremental_alter_configs([resource])[resource].result(timeout=PATIENCE_S)

    def configs() -> dict[str, str]:
        found = admin.describe_configs([resource])[resource].result(timeout=PATIENCE_S)
        return {name: found[name].value for name in ("retention.ms", "max.message.bytes")}

    wait_until(lambda: configs()["max.message.bytes"] == "2048", timeout_s=PATIENCE_S, what="the config applies")
    assert configs()["retention.ms"] == "7200000"
    request = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
    answer = asyncio.run(call(one.light.address, ApiKey.DESCRIBE_QUORUM, request))
    observers = answer["topics"][0]["partitions"][0]["observers"]
    assert LIGHT in {observer["replica_id"] for observer in observers}


def test_a_topic_is_created_automatically_by_a_light_broker(one: Mixed) -> None:
    """The broker sends CreateTopics to the controller with its own defaults (AutoTopicCreationManager)."""
    produce(one.light.address, "automatic", VALUES)

    assert read(one.light.address, "automatic", len(VALUES)) == VALUES


def test_an_error_of_the_controller_reaches_the_client(one: Mixed) -> None:
    """Deletion of a topic that does not exist, forwarded in an Envelope."""
    admin = one.admin(one.light.address)
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.delete_topics(["missing"])["missing"].result(timeout=PATIENCE_S)


@pytest.mark.shows("F70")
def test_a_kafka_broker_follows_a_light_broker(one: Mixed) -> None:
    """acks=all with min.insync.replicas 2: the follower leaves the ISR when it stops, and joins again by AlterPartition (KIP-497)."""
    one.create("replicated", [LIGHT, KAFKA], min_insync_replicas="2")
    produce(one.light.address, "replicated", VALUES, acks="all")

    one.kafka.stop()
    one.kafka.launch()
    one.kafka.wait_until_ready()
    one.wait_until_known()
    one.wait_until_in_sync("replicated", [LIGHT, KAFKA])
    produce(one.light.address, "replicated", VALUES, acks="all")

    assert read(one.light.address, "replicated", 2 * len(VALUES)) == VALUES * 2


def fetched(address: str, topic: str, rack: str) -> tuple[int, int]:
    """Fetch from offset 0 as a consumer in a rack; return the preferred replica, and the number of bytes."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000}
    body = {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "topics": [{"topic": topic, "partitions": [partition]}],
        "rack_id": rack,
        "session_epoch": -1,
    }
    answer = asyncio.run(call(address, ApiKey.FETCH, body, version=12))
    (found,) = answer["responses"][0]["partitions"]
    assert found["error_code"] == 0, found
    return found["preferred_read_replica"], len(found["records"] or b"")


def serves_what_is_committed(address: str, topic: str) -> None:
    """Wait until a follower serves records: it gets the high watermark with its next fetch."""
    wait_until(lambda: fetched(address, topic, "")[1] > 0, timeout_s=PATIENCE_S, what="the follower serves records")


def test_a_consumer_reads_from_the_replica_in_its_rack(one: Mixed) -> None:
    """KIP-392: the leader names the replica, which then serves what is committed; a consumer in the leader's rack stays."""
    one.create("near", [LIGHT, KAFKA])
    produce(one.bootstrap, "near", VALUES, acks="all")

    assert fetched(one.light.address, "near", RACKS[KAFKA]) == (KAFKA, 0)
    assert fetched(one.light.address, "near", RACKS[LIGHT])[0] == -1
    serves_what_is_committed(one.kafka.address, "near")
    assert read(one.bootstrap, "near", len(VALUES), **{"client.rack": RACKS[KAFKA]}) == VALUES

    one.create("far", [KAFKA, LIGHT])
    produce(one.bootstrap, "far", VALUES, acks="all")

    assert fetched(one.kafka.address, "far", RACKS[LIGHT]) == (LIGHT, 0)
    serves_what_is_committed(one.light.address, "far")
    assert read(one.bootstrap, "far", len(VALUES), **{"client.rack": RACKS[LIGHT]}) == VALUES


@pytest.mark.parametrize(("leader", "follower", "side"), [(LIGHT, KAFKA, "leader"), (KAFKA, LIGHT, "follower")])
def test_a_throttle_holds_a_new_replica_back_until_it_is_removed(
    one: Mixed, leader: int, follower: int, side: str
) -> None:
    """KIP-73: with 1 byte a second the first fetch is all that a replica outside the ISR gets."""
    topic = f"throttled-by-{side}"
    one.create(topic, [leader], **{f"{side}_replication_throttled_replicas": "*"})
    produce(one.bootstrap, topic, [b"x" * 100_000] * 40)
    rate = f"{side}.replication.throttled.rate"
    alter_broker_config(one, LIGHT, rate, "1")
    add_replica(one, topic, [leader, follower])

    wait_until(lambda: bytes_of(one, follower, topic) > 0, timeout_s=PATIENCE_S, what="the first fetch is answered")
    time.sleep(THROTTLED_S)
    held_back = bytes_of(one, follower, topic)
    alter_broker_config(one, LIGHT, rate, None)
    one.wait_for_state(topic, leader, {leader, follower})

    assert 0 < held_back < 40 * 100_000 <= bytes_of(one, follower, topic)


def alter_broker_config(one: Mixed, broker_id: int, name: str, value: str | None) -> None:
    """Set or remove a dynamic config of a broker, as kafka-reassign-partitions does."""
    admin = one.admin(one.kafka.address)
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    change = ConfigEntry(name, value or "", incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, str(broker_id), incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(timeout=PATIENCE_S)


def add_replica(one: Mixed, topic: str, replicas: list[int]) -> None:
    """Begin a reassignment of partition 0."""
    partition = {"partition_index": 0, "replicas": replicas}
    body = {"timeout_ms": 10_000, "topics": [{"name": topic, "partitions": [partition]}]}
    answer = asyncio.run(call(one.light.address, ApiKey.ALTER_PARTITION_REASSIGNMENTS, body))
    assert [partition["error_code"] for partition in answer["responses"][0]["partitions"]] == [0], answer


def bytes_of(one: Mixed, broker_id: int, topic: str) -> int:
    """Return the size of the log of partition 0 on a broker."""
    folder = one.light.log_dirs[0] if broker_id == LIGHT else one.kafka.data_folder
    return sum(path.stat().st_size for path in (folder / f"{topic}-0").glob("*.log"))


@pytest.mark.shows("F70")
def test_a_light_broker_that_was_shut_down_follows_a_kafka_broker_and_leads_after_it(one: Mixed) -> None:
    """C8: the controller lets it stop once it leads nothing. Back, it fetches what the other broker took, and loses none of it as the leader."""
    one.create("returned", [LIGHT, KAFKA])
    produce(one.light.address, "returned", VALUES, acks="all")

    one.light.signal(signal.SIGTERM)
    assert one.light.wait() == 0
    assert "Controlled shutdown is complete" in one.light.log_path.read_text()
    one.wait_for_state("returned", KAFKA, {KAFKA})
    produce(one.kafka.address, "returned", VALUES, acks="all")
    one.light.start()
    one.wait_until_known()
    wait_until(
        lambda: one.states("returned", one.light.address)[0][1] == {KAFKA, LIGHT},
        timeout_s=PATIENCE_S,
        what="the light broker is in the ISR",
    )
    one.kafka.stop()
    one.wait_for_state("returned", LIGHT, {LIGHT})
    found = read(one.light.address, "returned", 2 * len(VALUES))
    one.kafka.launch()
    one.kafka.wait_until_ready()
    one.wait_until_known()

    assert found == VALUES * 2


@pytest.mark.shows("F70")
def test_a_killed_light_broker_loses_its_session_and_its_leaders_and_comes_back(one: Mixed) -> None:
    """C9: nothing that was acknowledged is lost; the next process registers with another epoch when the session has expired."""
    one.create("killed", [LIGHT, KAFKA])
    produce(one.light.address, "killed", VALUES, acks="all")

    one.light.kill()
    wait_until(lambda: alive(one.kafka.address) == {KAFKA}, timeout_s=PATIENCE_S, what="the session has expired")
    found = read(one.kafka.address, "killed", len(VALUES))
    one.light.start()
    one.wait_until_known()

    assert found == VALUES


def test_groups_have_their_coordinators_on_both_brokers(one: Mixed) -> None:
    """A group that joins by one broker finds its coordinator on the other."""
    one.create("grouped", [LIGHT])
    produce(one.bootstrap, "grouped", VALUES)
    for number, group in enumerate(("a", "b", "c", "d")):
        bootstrap = (one.light.address, one.kafka.address)[number % 2]
        config = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = Consumer({**config, "enable.auto.commit": False})
        consumer.subscribe(["grouped"])
        found = consumer.consume(len(VALUES), timeout=PATIENCE_S)
        consumer.commit(asynchronous=False)
        committed = consumer.committed([TopicPartition("grouped", 0)], timeout=PATIENCE_S)
        consumer.close()
        assert ([record.value() for record in found], committed[0].offset) == (VALUES, len(VALUES))


def test_a_deleted_topic_is_gone_from_a_light_broker(one: Mixed) -> None:
    """The removal of the topic in the log deletes the replica's folder."""
    one.create("gone", [LIGHT])

    admin = one.admin(one.light.address)
    admin.delete_topics(["gone"])["gone"].result(timeout=PATIENCE_S)

    wait_until(
        lambda: (
            "gone" not in admin.list_topics(timeout=PATIENCE_S).topics
            and not (one.light.log_dirs[0] / "gone-0").exists()
        ),
        timeout_s=PATIENCE_S,
        what="the topic is deleted",
    )


def test_a_broker_of_another_cluster_does_not_start(one: Mixed) -> None:
    """INCONSISTENT_CLUSTER_ID of the controllers; the words name it, and the time that was waited."""
    settings = light_settings({"initial.broker.registration.timeout.ms": "1000"})
    other = KRaftLightBroker(
        LIGHT, one.folder / "other", cluster_id="AAAAAAAAAAAAAAAAAAAAAQ", quorum=one.quorum, settings=settings
    )
    other.launch()

    code = other.wait(timeout_s=PATIENCE_S)

    assert code == 1
    assert "The broker could not register within 1 s" in other.log_text()
    assert "INCONSISTENT_CLUSTER_ID" in other.log_text()


@pytest.mark.shows("F70")
def test_a_cluster_with_the_features_of_kafka_4_refuses_a_light_broker_and_names_the_command(tmp_path: Path) -> None:
    """A controller refuses a broker that lacks a level in effect (ClusterControlManager.registerBroker)."""
    with kafka_controller(tmp_path, features=()) as (quorum, cluster_id):
        settings = light_settings({"initial.broker.registration.timeout.ms": "1000"})
        light = KRaftLightBroker(LIGHT, tmp_path, cluster_id=cluster_id, quorum=quorum, settings=settings)
        light.launch()
        code = light.wait(timeout_s=PATIENCE_S)

    assert code == 1
    assert "The controller answered UNSUPPORTED_VERSION: The cluster has group.version 1" in light.log_text()
    lowered = "group.version=0 --feature share.version=0 --feature streams.version=0 --feature transaction.version=0"
    assert f"Run `kafka-features.sh downgrade --feature {lowered}`" in light.log_text()


def test_an_unformatted_directory_is_refused_and_formatted_by_steward_format(one: Mixed) -> None:
    """As Kafka's broker: a broker that lost its disk must not come back by itself as if it had all records."""
    other = KRaftLightBroker(LIGHT, one.folder / "bare", cluster_id=one.cluster_id, quorum=one.quorum)
    (other.log_dirs[0] / "meta.properties").unlink()
    other.launch()
    code = other.wait(timeout_s=PATIENCE_S)
    command = [*steward_command("format"), "--config", str(other.config), "--cluster-id", one.cluster_id]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=steward_environment()
    )
    again = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=steward_environment()
    )

    assert (code, done.returncode, again.returncode) == (1, 0, 1)
    assert "No meta.properties found" in other.log_text()
    assert "Formatted data directory" in done.stdout
    assert "is already formatted" in again.stderr
