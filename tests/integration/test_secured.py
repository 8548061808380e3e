"""A cluster with TLS and SCRAM on every listener: brokers, controller and clients."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import ConnectionRejectedError
from kafka_operator.decide.elections.election import Elect
from kafka_operator.decide.kafka.observed import KafkaTopic
from kafka_operator.decide.steps import CreateTopic
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.election import ElectionType
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.security import Login, Security
from kafka_wire.sasl.scram_keys import SCRAM_SHA_512, encode_credential, make_credential
from kafka_zookeeper.formats.configs import encode_config
from lab.peers.authority import Authority
from lab.peers.cluster import KafkaCluster
from lab.peers.cluster import kafka_cluster as start_kafka_cluster
from lab.peers.kafka import CLIENT, INTERNAL
from lab.peers.steward import StewardController
from lab.processes.folder import lab_folder
from lab.processes.ports import free_port, release_port
from lab.processes.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.kafka

PATIENCE_S = 30.0
CONTROLLER = 1000
MECHANISM = SCRAM_SHA_512.name
PASSWORDS = {"broker": 'of brokers, = " and ü', "controller": "of the controller"}
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class Secured:
    """The cluster, the controller, and its address."""

    def __init__(self, cluster: KafkaCluster, controller: StewardController, port: int, authority: Authority) -> None:
        self.cluster = cluster
        self.controller = controller
        self.address = f"127.0.0.1:{port}"
        self.authority = authority

    def client(self, user: str, password: str, server: str | None = None) -> dict[str, str | int]:
        """Settings of a client that connects to the controller, or to another server."""
        return {
            "bootstrap.servers": server or self.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority.certificate),
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
        }


def broker_settings(authority: Authority) -> dict[str, str]:
    """Settings of brokers with SASL_SSL only."""
    store = authority.store("brokers", "/CN=broker")
    password = PASSWORDS["broker"].replace('"', '\\\\"').replace("ü", "\\u00fc")
    login = f'{LOGIN} username="broker" password="{password}";'
    logins = {
        f"listener.name.{listener.lower()}.{MECHANISM.lower()}.sasl.jaas.config": login
        for listener in (INTERNAL, CLIENT)
    }
    return {
        "listener.security.protocol.map": f"{INTERNAL}:SASL_SSL,{CLIENT}:SASL_SSL",
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "connections.max.reauth.ms": "5000",
        **logins,
    }


def controller_options(authority: Authority, ports: dict[str, int]) -> list[str]:
    """Options of a controller with SASL_SSL only, to clients and to brokers."""
    certificate, key = authority.sign("controller", "/CN=controller")
    password = authority.folder / "password"
    password.write_text(PASSWORDS["controller"])
    password.chmod(0o600)
    return [
        *(f"--listener={name}=SASL_SSL://127.0.0.1:{port}" for name, port in ports.items()),
        f"--tls-certificate={certificate}",
        f"--tls-key={key}",
        f"--sasl-mechanism={MECHANISM}",
        f"--broker-tls-ca={authority.certificate}",
        f"--broker-sasl-mechanism={MECHANISM}",
        "--broker-sasl-username=controller",
        f"--broker-sasl-password-file={password}",
        "--no-authorizer",
    ]


def write_users(cluster: KafkaCluster) -> None:
    """Write the first users into ZooKeeper, as kafka-configs does before a secured cluster starts."""
    for user, password in PASSWORDS.items():
        salted = SCRAM_SHA_512.salted_password(password, b"a salt of tests", 4096)
        kept = encode_credential(make_credential(SCRAM_SHA_512, salted, b"a salt of tests", 4096))
        cluster.zookeeper.client.create(f"/config/users/{user}", encode_config({MECHANISM: kept}), makepath=True)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The controller first, then two brokers."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    ports = {INTERNAL: free_port(), CLIENT: free_port()}
    with contextlib.ExitStack() as stack:
        folder: Path = stack.enter_context(lab_folder(None))
        cluster = stack.enter_context(
            start_kafka_cluster((1, 2), start=False, folder=folder, settings=broker_settings(authority))
        )
        write_users(cluster)
        options = controller_options(authority, ports)
        controller = StewardController(cluster.zookeeper_connect, folder, listeners=(), arguments=options)
        stack.callback(controller.close)
        for port in ports.values():
            stack.callback(release_port, port)
        controller.start()
        cluster.wait_for_controller(CONTROLLER)
        cluster.start_brokers()
        yield Secured(cluster, controller, ports[CLIENT], authority)


def test_users_are_created_and_can_use_the_cluster_through_the_controller(secured: Secured) -> None:
    """AlterUserScramCredentials, a topic, records produced and consumed (relayed under the controller's login), and a leader's failure."""
    admin = AdminClient(secured.client("controller", PASSWORDS["controller"]))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    made = admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", info, b"hers")])
    made["alice"].result(PATIENCE_S)
    described = admin.describe_user_scram_credentials(["alice"])["alice"].result(PATIENCE_S)
    assert [credential.iterations for credential in described.scram_credential_infos] == [8192]

    alice = secured.client("alice", "hers")
    wait_until(lambda: can_connect(alice), timeout_s=PATIENCE_S, what="a connection of alice")
    admin_of_alice = AdminClient(alice)
    topic = NewTopic("secured", 2, 2)
    admin_of_alice.create_topics([topic])["secured"].result(PATIENCE_S)
    secured.cluster.wait_until_in_sync("secured")
    send_and_read(alice, "secured", "first")

    metadata = admin_of_alice.list_topics(timeout=PATIENCE_S)
    assert set(metadata.brokers) == {1, 2, CONTROLLER}

    secured.cluster.broker(1).kill()
    wait_until(
        lambda: {2} == leaders(secured.cluster, "secured"), timeout_s=PATIENCE_S, what="broker 2 leads everything"
    )
    send_and_read(alice, "secured", "second")
    secured.cluster.broker(1).start()
    secured.cluster.wait_until_in_sync("secured")

    removed = admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_512)])
    removed["alice"].result(PATIENCE_S)
    assert not can_connect(alice)


def test_other_users_are_refused(secured: Secured) -> None:
    """A wrong password, an unknown user, and no login at all; the controller's log contains no secret."""
    for user, password in (("controller", "guessed-secret"), ("nobody", "guessed-secret")):
        assert not can_connect(secured.client(user, password))
    assert not can_connect({"bootstrap.servers": secured.address, "log_level": 0})
    assert not can_connect(
        {**secured.client("controller", PASSWORDS["controller"]), "security.protocol": "SASL_PLAINTEXT"}
    )
    assert can_connect(secured.client("controller", PASSWORDS["controller"]))

    log = secured.controller.process.log_text()
    assert "Authentication failed" in log
    assert [secret for secret in ("guessed-secret", *PASSWORDS.values()) if secret in log] == []


async def test_the_operator_connects_and_elects_leaders(secured: Secured) -> None:
    """The operator's client with only the controller as its address, by TLS and SCRAM: nodes, health, ElectLeaders, a wrong password."""
    ca = secured.authority.certificate.read_text(encoding="ascii")
    login = Login(MECHANISM, "controller", PASSWORDS["controller"])
    operator = KafkaAdmin([secured.address], KafkaMetrics(), Security(tls=True, ca=ca, login=login))
    try:
        topic = CreateTopic("operated", 4, 2, ())
        assert await operator.create_topics([topic]) == {}
        await asyncio.to_thread(secured.cluster.wait_until_in_sync, "operated")
        seen = await operator.describe_cluster()
        assert (seen.controller_id, seen.broker_ids) == (CONTROLLER, (1, 2))
        assert (await operator.describe_versions(seen.broker_ids)).software == ("3.9",)
        await asyncio.to_thread(secured.cluster.broker(1).restart)
        await asyncio.to_thread(secured.cluster.wait_until_in_sync, "operated")

        everything = tuple(Partition("operated", index) for index in range(4))
        assert await operator.elect_leaders(Elect(ElectionType.PREFERRED, everything)) == {}
        found = (await operator.describe_topics(["operated"]))["operated"]
        assert isinstance(found, KafkaTopic)
        assert [item.replicas[0] for item in found.partitions] == [item.leader for item in found.partitions]
        cluster_metrics = await operator.describe_cluster_metrics()
        assert (cluster_metrics.under_replicated, cluster_metrics.offline) == (0, 0)
    finally:
        await operator.close()

    guess = Security(tls=True, ca=ca, login=Login(MECHANISM, "controller", "guessed-secret"))
    stranger = KafkaAdmin([secured.address], KafkaMetrics(), guess)
    with pytest.raises(ConnectionRejectedError, match="AuthenticationFailed"):
        await stranger.describe_cluster()
    await stranger.close()


def test_topics_are_imported_with_the_file_of_kafkas_own_tools(secured: Secured, tmp_path: Path) -> None:
    """`steward import --command-config`: the same file as for kafka-topics; a wrong password is reported, and not printed."""
    topic = NewTopic("to-import", 2, 2, config={"retention.ms": "12345"})
    admin = AdminClient(secured.client("controller", PASSWORDS["controller"]))
    admin.create_topics([topic])["to-import"].result(PATIENCE_S)
    secured.cluster.wait_until_in_sync("to-import")

    done = run_import(secured, tmp_path, PASSWORDS["controller"])
    assert done.returncode == 0, done.stderr
    expected = {
        "clusterRef": {"name": "main"},
        "partitions": 2,
        "replicationFactor": 2,
        "config": {"retention.ms": "12345"},
        "deletionPolicy": "Retain",
    }
    assert yaml.safe_load(done.stdout)["spec"] == expected

    refused = run_import(secured, tmp_path, "guessed-secret")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "AuthenticationFailed" in refused.stderr
    assert "guessed-secret" not in refused.stderr


def run_import(secured: Secured, folder: Path, password: str) -> subprocess.CompletedProcess[str]:
    """Import one topic, as the user of the controller."""
    config = folder / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\n"
        f"sasl.mechanism={MECHANISM}\n"
        f'sasl.jaas.config={LOGIN} username="controller" password="{password}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.authority.certificate}\n",
        encoding="utf-8",
    )
    return subprocess.run(
        [
            *(sys.executable, "-m", "steward", "import", "--bootstrap-server", secured.address),
            *("--command-config", str(config), "--cluster", "main", "--include", "to-import"),
        ],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"},
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def can_connect(settings: dict[str, str | int]) -> bool:
    """Whether a client with these settings gets an answer."""
    try:
        AdminClient(settings).list_topics(timeout=3)
    except KafkaException:
        return False
    return True


def leaders(cluster: KafkaCluster, topic: str) -> set[int]:
    """Leaders of the topic's partitions."""
    states = [cluster.partition_state(topic, partition) for partition in cluster.assignment(topic)]
    return {-1 if state is None else state["leader"] for state in states}


def send_and_read(settings: dict[str, str | int], topic: str, word: str) -> None:
    """Produce records, and read them all in a group."""
    expected = {f"{word}-{number}".encode() for number in range(20)}
    producer = Producer({**settings, "acks": "all"})
    for value in expected:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({**settings, "group.id": f"group-{word}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: set[bytes] = set()

    def all_read() -> bool:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.add(message.value())
        return expected <= found

    try:
        wait_until(all_read, timeout_s=PATIENCE_S, what="all records are read")
    finally:
        consumer.close()
