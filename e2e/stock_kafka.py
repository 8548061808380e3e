"""A stock Kafka 4.3 in a namespace of its own, as others run it: three nodes with their own quorum, SASL_SSL for clients, and an authorizer.

Nothing in it knows Steward. Each pod is a broker and a controller; its data are in the pod.
"""

from __future__ import annotations

import base64
import secrets
import tempfile
from pathlib import Path
from typing import Any

from e2e.command import run
from e2e.images import DOCKERFILES, KAFKA, LOAD_TIMEOUT_S, ROOT
from e2e.kind import cluster
from e2e.kind.node_image import build
from e2e.kind.programs import clients
from e2e.kube import Kube, Resource, kind_name
from lab.downloads.jars import NEWEST_KAFKA_VERSION

NAMESPACE = "stock"

NAME = "kafka"

NODES = f"{NAME}-nodes"
"""The headless Service, in whose domain each pod has its name."""

BOOTSTRAP = f"{NAME}.{NAMESPACE}.svc.cluster.local:9092"

IMAGE = "stock-kafka:dev"

USER = "operator"

CA_SECRET, USER_SECRET = "kafka-ca", "kafka-user"
"""Names of the Secrets that a client needs, with the keys that a Cluster uses by default."""

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
"""Any UUID in Kafka's form."""

IDS = (0, 1, 2)

START_TIMEOUT_S = 240.0

SETTINGS = {
    "process.roles": "broker,controller",
    "listeners": "CLIENT://0.0.0.0:9092,INTERNAL://0.0.0.0:9094,CONTROLLER://0.0.0.0:9095",
    "listener.security.protocol.map": "CLIENT:SASL_SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": ",".join(f"{node_id}@{NAME}-{node_id}.{NODES}:9095" for node_id in IDS),
    "listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.client.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "listener.name.client.ssl.keystore.type": "PEM",
    "listener.name.client.ssl.keystore.location": "/etc/kafka/keystore.pem",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The plain listeners are only for the nodes themselves.
    "super.users": f"User:ANONYMOUS;User:{USER}",
    "log.dirs": "/tmp/data",
    "offsets.topic.replication.factor": "3",
    "log.cleaner.dedupe.buffer.size": "4194304",
}

START = """
number=${POD_NAME##*-} host=$POD_NAME.DOMAIN
{ cat /etc/kafka/server.properties; echo "node.id=$number"; echo "advertised.listeners=CLIENT://$host:9092,INTERNAL://$host:9094"; } >/tmp/node
steward-kafka tool kafka.tools.StorageTool format --ignore-formatted --cluster-id CLUSTER_ID --config /tmp/node \
  --add-scram "SCRAM-SHA-512=[name=USER,password=$PASSWORD]"
exec steward-kafka tool kafka.Kafka /tmp/node
"""


def load_image(kube: Kube) -> None:
    """Build the image and put it onto the nodes of a kind cluster: the stages of the project's image of Kafka, with the jars of 4.3."""
    name = kind_name(kube)
    if name is None:
        return
    arguments = [f"BASE={cluster.prepare()}", f"KAFKA_VERSION={NEWEST_KAFKA_VERSION}"]
    build(IMAGE, DOCKERFILES[KAFKA], ROOT, arguments=arguments, stage="runtime")
    run(clients().kind, "load", "docker-image", IMAGE, f"--name={name}", timeout_s=LOAD_TIMEOUT_S)


class StockKafka:
    """The cluster; `certificate` (PEM) and `password` are what its clients need."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube.within(NAMESPACE)
        self.password = secrets.token_urlsafe(16)
        self._key, self.certificate = _key_and_certificate()

    def install(self) -> None:
        """Create it and wait until every node is ready."""
        self.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        properties = "".join(f"{name}={value}\n" for name, value in SETTINGS.items())
        files = {
            "server.properties": properties,
            "keystore.pem": self._key + self.certificate,
            "password": self.password,
        }
        self.kube.apply(secret(NAME, files), _service(NAME, {}), _service(NODES, {"clusterIP": "None"}), _nodes())
        self.kube.wait_workload(f"statefulset/{NAME}", timeout_s=START_TIMEOUT_S)

    def client_secrets(self) -> tuple[Resource, Resource]:
        """Return the Secrets for a client in another namespace: the certificate authority, and the login."""
        login = {"username": USER, "password": self.password}
        return secret(CA_SECRET, {"ca.crt": self.certificate}), secret(USER_SECRET, login)

    def uninstall(self) -> None:
        """Delete it."""
        self.kube.delete("namespace", NAMESPACE, "--wait=false")

    def topic(self, name: str) -> dict[int, tuple[int, list[int]]]:
        """Return the leader and the replicas of each partition by Kafka's own tool, empty if the topic does not exist."""
        tool = ("steward-kafka", "tool", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", "localhost:9094")
        described = self.kube.execute(f"{NAME}-0", *tool, "--describe", "--topic", name, "--if-exists")
        found = {}
        for line in described.splitlines():
            fields = dict(field.split(": ", 1) for field in line.strip().split("\t") if ": " in field)
            if "Partition" in fields:
                replicas = [int(broker) for broker in fields["Replicas"].split(",")]
                found[int(fields["Partition"])] = (int(fields["Leader"]), replicas)
        return found


def secret(name: str, files: dict[str, str]) -> Resource:
    """Return a Secret with these keys."""
    data = {key: base64.b64encode(value.encode()).decode("ascii") for key, value in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def _key_and_certificate() -> tuple[str, str]:
    """Return a private key and a certificate for the names of the Services, signed by itself, as PEM."""
    domain = f"{NAMESPACE}.svc.cluster.local"
    names = f"subjectAltName=DNS:{NAME}.{domain},DNS:*.{NODES}.{domain}"
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder) / "key.pem", Path(folder) / "certificate.pem"
        options = ("-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=kafka", "-addext", names)
        run("openssl", "req", "-x509", *options, "-keyout", key, "-out", certificate)
        return key.read_text("ascii"), certificate.read_text("ascii")


def _service(name: str, spec: dict[str, Any]) -> Resource:
    ports = [{"name": "client", "port": 9092}]
    common = {"selector": {"app": NAME}, "ports": ports, "publishNotReadyAddresses": bool(spec)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": common | spec}


def _nodes() -> Resource:
    domain = f"{NODES}.{NAMESPACE}.svc.cluster.local"
    script = START.replace("DOMAIN", domain).replace("CLUSTER_ID", CLUSTER_ID).replace("USER", USER)
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-ec", script],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": NAME, "key": "password"}}},
            {"name": "JAVA_HEAP", "value": "256m"},
        ],
        "readinessProbe": {"tcpSocket": {"port": 9092}, "periodSeconds": 2},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka", "readOnly": True}],
    }
    labels = {"app": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": len(IDS),
            "serviceName": NODES,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 10,
                    "enableServiceLinks": False,
                    "containers": [container],
                    "volumes": [{"name": "config", "secret": {"secretName": NAME}}],
                },
            },
        },
    }
