"""A light broker as the only broker under Steward's controllers: several of them, logins and rights, several log directories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kafka_log.files.text_files import read_meta_properties
from kafka_metadata.image import MetadataImage
from kafka_node.authorization.settings import STANDARD_AUTHORIZER
from lab.peers.created_topic import create_topic
from lab.peers.light_broker import FEATURES, KRaftLightBroker
from lab.processes.waiting import wait_until
from tests.controller_core.shell.quorum.members import CLUSTER_ID
from tests.integration.light_brokers_kraft import LIGHT, PATIENCE_S, light_settings
from tests.integration.steward_controllers import StewardCluster, steward_cluster
from tests.integration.test_kafka_4_security import CONTROLLER, LOGIN

pytestmark = pytest.mark.kafka


def light_broker(cluster: StewardCluster, *, directories: int = 1, **values: str) -> KRaftLightBroker:
    """Start a light broker; `_` is a dot in the names of its settings."""
    settings = light_settings({name.replace("_", "."): value for name, value in values.items()})
    light = KRaftLightBroker(
        LIGHT,
        cluster.folder,
        cluster_id=CLUSTER_ID,
        quorum=cluster.voters,
        directories=directories,
        settings=settings,
    )
    light.start()
    return light


def committed(cluster: StewardCluster) -> MetadataImage:
    """Return the image of the active controller."""
    controller = cluster.active().controller
    assert controller is not None
    return controller.committed_image


def client(light: KRaftLightBroker, user: str) -> Mapping[str, str]:
    """Return the settings of a client that logs in by SCRAM."""
    return {
        "bootstrap.servers": light.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": f"{user}s",
    }


def create(settings: Mapping[str, str], topic: str, partitions: int = 1) -> None:
    """Create a topic with one replica."""
    admin = AdminClient(dict(settings))
    create_topic(admin, NewTopic(topic, partitions, 1), PATIENCE_S)


def test_users_and_rights_come_from_the_metadata_and_requests_are_judged_as_those_of_their_users() -> None:
    """The broker logs in to the controller by SCRAM; a client without the right to create is refused there (KIP-590)."""
    users = tuple(f"SCRAM-SHA-256=[name={name},password={name}s]" for name in ("admin", "broker", "alice"))
    login = LOGIN.format("broker")
    secured = {
        "listener_security_protocol_map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl_enabled_mechanisms": "SCRAM-SHA-256",
        "sasl_mechanism_controller_protocol": "SCRAM-SHA-256",
        "sasl_mechanism_inter_broker_protocol": "SCRAM-SHA-256",
        "listener_name_controller_scram-sha-256_sasl_jaas_config": login,
        "listener_name_client_scram-sha-256_sasl_jaas_config": login,
        "authorizer_class_name": STANDARD_AUTHORIZER,
        "super_users": "User:broker;User:admin",
    }
    with steward_cluster(1, 0, settings=CONTROLLER, scram=users, features=FEATURES) as cluster:
        light = light_broker(cluster, **secured)
        try:
            with pytest.raises(KafkaException, match=r"(TOPIC|CLUSTER)_AUTHORIZATION_FAILED"):
                create(client(light, "alice"), "refused")
            admin = AdminClient(dict(client(light, "admin")))
            rule = (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:alice", "*")
            given = AclBinding(*rule, AclOperation.CREATE, AclPermissionType.ALLOW)
            admin.create_acls([given])[given].result(timeout=PATIENCE_S)
            wanted = AclBindingFilter(*rule, AclOperation.ANY, AclPermissionType.ANY)
            wait_until(
                lambda: admin.describe_acls(wanted).result(timeout=PATIENCE_S) == [given],
                timeout_s=PATIENCE_S,
                what="the broker has the ACL",
            )
            create(client(light, "alice"), "orders")
            described = admin.describe_user_scram_credentials(["alice"])["alice"].result(timeout=PATIENCE_S)
        finally:
            light.kill()

    assert [credential.mechanism.name for credential in described.scram_credential_infos] == ["SCRAM_SHA_256"]


def test_replicas_are_reported_in_their_directories_and_a_failed_one_takes_its_leaders_away() -> None:
    """AssignReplicasToDirs, and offline_log_dirs of the next heartbeat (KIP-858)."""
    with steward_cluster(1, 0, features=FEATURES) as cluster:
        light = light_broker(cluster, directories=2, log_flush_offset_checkpoint_interval_ms="200")
        try:
            ids = {path: _directory_id(path) for path in light.log_dirs}
            create({"bootstrap.servers": light.address}, "spread", 4)

            def places() -> dict[int, UUID]:
                topic = committed(cluster).topic("spread")
                return (
                    {}
                    if topic is None
                    else {number: partition.directories[0] for number, partition in topic.partitions.items()}
                )

            def actual() -> dict[int, UUID]:
                return {
                    number: ids[path]
                    for path in light.log_dirs
                    for number in range(4)
                    if (path / f"spread-{number}").is_dir()
                }

            wait_until(
                lambda: places() == actual() and len(actual()) == 4, timeout_s=PATIENCE_S, what="directories are known"
            )
            lost = {number for number, directory in actual().items() if directory == ids[light.log_dirs[1]]}
            # In one step: the broker writes files into it all the time.
            light.log_dirs[1].rename(light.log_dirs[1].with_suffix(".lost"))
            producer = Producer({"bootstrap.servers": light.address, "acks": "1", "message.timeout.ms": "2000"})
            for number in range(4):
                producer.produce("spread", b"value", partition=number)
            producer.flush(PATIENCE_S)

            def leaderless() -> set[int]:
                topic = committed(cluster).topic("spread")
                assert topic is not None
                return {number for number, partition in topic.partitions.items() if partition.leader < 0}

            wait_until(lambda: leaderless() == lost, timeout_s=PATIENCE_S, what="the lost partitions have no leader")
        finally:
            light.kill()

    assert 0 < len(lost) < 4


def _directory_id(path: Path) -> UUID:
    found = read_meta_properties(path)
    assert found is not None
    assert found.directory_id is not None
    return found.directory_id


def test_a_light_broker_goes_on_under_the_next_controller() -> None:
    """Two of three controllers go on without the active one; the broker finds the next by its fetches, and topics are created there."""
    with steward_cluster(3, 0, features=FEATURES) as cluster:
        light = light_broker(cluster)
        try:
            create({"bootstrap.servers": light.address}, "before")
            first = cluster.active()
            cluster.loop.wait(first.crash())
            second = cluster.active()
            create({"bootstrap.servers": light.address}, "after")
            admin = AdminClient({"bootstrap.servers": light.address})
            wait_until(
                lambda: {"before", "after"} <= set(admin.list_topics(timeout=PATIENCE_S).topics),
                timeout_s=PATIENCE_S,
                what="the broker follows the next controller",
            )
            fenced = committed(cluster).brokers[LIGHT].fenced
        finally:
            light.kill()

    assert second is not first
    assert not fenced
