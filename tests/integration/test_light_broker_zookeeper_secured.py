"""A light broker and a Kafka 3.9 broker in a cluster whose ZooKeeper requires TLS, with ACLs on all znodes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.peers.authority import Authority
from lab.peers.cluster import kafka_cluster
from lab.peers.light_broker import ZooKeeperLightBroker
from lab.peers.live_brokers import alive
from lab.peers.zookeeper import ZooKeeperServer, tls_settings, zookeeper_server
from lab.processes.folder import lab_folder
from lab.processes.ports import free_port, release_port
from lab.processes.waiting import wait_until
from tests.integration.conftest import CHROOT, PATIENCE_S
from tests.integration.few_records import produce, read

pytestmark = pytest.mark.kafka

KAFKA, LIGHT = 1, 2
VALUES = [f"value {number}".encode() for number in range(50)]


@dataclass(frozen=True, slots=True)
class Secured:
    """A running cluster. `zookeeper` also has a port without TLS, for the test."""

    zookeeper: ZooKeeperServer
    light: ZooKeeperLightBroker
    bootstrap: str

    def owners(self, path: str) -> set[str]:
        """Return who may change a znode, and `world:anyone` if others may read it."""
        acls, _ = self.zookeeper.client.get_acls(f"{CHROOT}{path}")
        return {f"{acl.id.scheme}:{acl.id.id}" for acl in acls}


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Secured]:
    """Start ZooKeeper, a broker of Kafka, which is the controller, and a light broker; both have certificates of one name."""
    port = free_port()
    tls = {
        "zookeeper.connect": f"127.0.0.1:{port}{CHROOT}",
        "zookeeper.connection.timeout.ms": "60000",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.location": str(authority.store("brokers", "/CN=brokers")),
        "zookeeper.ssl.truststore.location": str(authority.certificate),
        "zookeeper.set.acl": "true",
    }
    with (
        lab_folder() as folder,
        zookeeper_server(folder, settings=tls_settings(authority, port)) as zookeeper,
        kafka_cluster((KAFKA,), zookeeper=zookeeper, chroot=CHROOT, folder=folder, settings=tls) as cluster,
    ):
        light = ZooKeeperLightBroker(LIGHT, zookeeper, folder, chroot=CHROOT, settings=tls)
        try:
            light.start()
            addresses = [cluster.broker(KAFKA).address(), light.address()]
            wait_until(
                lambda: all({KAFKA, LIGHT} <= alive(address) for address in addresses),
                timeout_s=PATIENCE_S,
                what="each broker knows the other one",
            )
            yield Secured(zookeeper, light, ",".join(addresses))
        finally:
            light.kill()
            release_port(port)


@pytest.mark.shows("F71")
def test_both_brokers_replicate_where_zookeeper_requires_tls(secured: Secured) -> None:
    """zookeeper.ssl.client.enable: the client certificate is the identity of the session."""
    admin = AdminClient({"bootstrap.servers": secured.bootstrap})
    assignment = [[LIGHT, KAFKA], [KAFKA, LIGHT]]
    admin.create_topics([NewTopic("orders", 2, replica_assignment=assignment)])["orders"].result(timeout=PATIENCE_S)

    produce(secured.bootstrap, "orders", VALUES)

    assert sorted(read(secured.light.address(), "orders", len(VALUES))) == sorted(VALUES)


def test_znodes_of_a_light_broker_belong_to_the_brokers(secured: Secured) -> None:
    """zookeeper.set.acl (ZkData.defaultAcls): anyone may read the registration, as that of the broker of Kafka."""
    registration = json.loads(secured.zookeeper.read(secured.light.registration_path) or b"")

    assert registration["version"] == 5
    assert secured.owners(f"/brokers/ids/{LIGHT}") == {"x509:CN=brokers", "world:anyone"}
    assert secured.owners(f"/brokers/ids/{LIGHT}") == secured.owners(f"/brokers/ids/{KAFKA}")
