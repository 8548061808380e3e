"""`steward import`: what is written of a live cluster applies, and is Ready at once with no change to it (features (e) 8)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import steward.import_command
from kafka_node.security.aws_identity import AwsIdentity
from kafka_operator import kinds
from kafka_operator.admin.port import CallRefusedError
from kafka_operator.decide.kafka.observed import ConfigValue, Failure
from kafka_operator.importing.client_config import (
    ClientConfigError,
    parse_properties,
    read_client_config,
    security_of,
)
from kafka_operator.importing.manifests import ImportSelection, is_selected, manifests_of
from kafka_operator.importing.names import resource_names
from kafka_operator.importing.run import ImportFailedError, read_topics, write_folder, write_stream
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.security import (
    BearerToken,
    ClientCertificate,
    ClientCredentials,
    Login,
    Security,
)
from kafka_operator.resources.topic import DeletionPolicy, Policy
from reconciler.names import Key
from reconciler.resources.object_names import is_object_name
from steward.main import app
from tests.kafka_operator.fake_admin import FakeAdmin
from tests.kafka_operator.fake_kafka import FakeKafka
from tests.kafka_operator.makers import kafka_topic
from tests.kafka_operator.world import RESYNC_S, running
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import in_virtual_time

TOPIC_NAMES = st.text(st.sampled_from("abzAZ09._-"), min_size=1, max_size=249).filter(
    lambda name: name not in {".", ".."}
)
SELECTION = ImportSelection("main", namespace="shop")


def documents(text: str) -> list[dict[str, Any]]:
    """The YAML documents of a stream."""
    return list(yaml.safe_load_all(text))


@given(st.lists(TOPIC_NAMES, max_size=20, unique=True))
def test_every_topic_gets_a_name_of_its_own_that_kubernetes_takes(topics: list[str]) -> None:
    """RFC 1123; a topic whose name is one keeps it; the same again at every run, whatever else there is."""
    names = resource_names(topics)

    assert set(topics) == names.keys()
    assert len(topics) == len(set(names.values()))
    assert all(map(is_object_name, names.values()))
    assert [topic for topic in topics if is_object_name(topic)] == [t for t in topics if names[t] == t]
    assert names == resource_names(reversed(topics))


def test_a_derived_name_gives_way_to_a_topic_that_has_it() -> None:
    """The other topic gets another name; no name is used twice."""
    derived = resource_names(["Orders"])["Orders"]
    names = resource_names(["Orders", derived])

    assert derived == names[derived]
    assert names["Orders"] not in {derived, "orders"}


def test_only_what_is_set_on_a_topic_is_written() -> None:
    """No defaults, no throttles of a move; strings stay strings; a name that differs goes to topicName."""
    topic = kafka_topic("Orders", partitions=2, retention_ms="5", leader_replication_throttled_replicas="*", no="true")

    (manifest,) = manifests_of([topic], SELECTION)

    expected = {
        "clusterRef": {"name": "main"},
        "topicName": "Orders",
        "partitions": 2,
        "replicationFactor": 3,
        "config": {"no": "true", "retention.ms": "5"},
        "deletionPolicy": "Retain",
    }
    assert manifest.document["spec"] == expected
    stream = io.StringIO()
    write_stream([manifest], stream)
    assert documents(stream.getvalue()) == [manifest.document]


def test_policies_and_a_cluster_elsewhere_are_written_when_they_are_requested() -> None:
    """--policy Observe: compared and never changed."""
    selection = ImportSelection(
        "main", cluster_namespace="kafka", policy=Policy.OBSERVE, deletion_policy=DeletionPolicy.PROTECT
    )
    (manifest,) = manifests_of([kafka_topic("a")], selection)

    assert manifest.document["metadata"] == {"name": "a"}
    spec = manifest.document["spec"]
    assert spec["clusterRef"] == {"name": "main", "namespace": "kafka"}
    assert (spec["policy"], spec["deletionPolicy"]) == ("Observe", "Protect")


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (ImportSelection("c"), ["a-1", "a-2", "b"]),
        (ImportSelection("c", include=("a-*", "x")), ["a-1", "a-2"]),
        (ImportSelection("c", include=("a-*",), exclude=("*-2",)), ["a-1"]),
        (ImportSelection("c", internal=True), ["__consumer_offsets", "a-1", "a-2", "b"]),
    ],
)
def test_topics_are_chosen_by_patterns_and_internal_ones_are_left_out(
    selection: ImportSelection, expected: list[str]
) -> None:
    """--include, --exclude, --internal."""
    names = ["__consumer_offsets", "a-1", "a-2", "b"]

    assert [name for name in names if is_selected(name, selection)] == expected


@pytest.mark.shows("E8")
@in_virtual_time
async def test_imported_topics_are_ready_at_once_without_a_change() -> None:
    """It applies and is Ready; nothing is created, altered, grown or moved."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)] * 3, retention_ms="5", cleanup_policy="compact")
        world.kafka.add("Payments_v2", [(2, 3)])
        world.kafka.add("__consumer_offsets", [(1, 2, 3)])
        before = world.kafka.state()
        manifests = await read_topics(world.kafka, SELECTION, pytest.fail)
        world.gate.calls.clear()
        keys = [world.kube.apply(manifest.document) for manifest in manifests]
        assert [
            Key(kinds.TOPIC, "shop", name) for name in (resource_names(["Payments_v2"])["Payments_v2"], "orders")
        ] == keys

        await world.until(lambda: all(world.kube.ready(key)[0] == "True" for key in keys), 2)
        await world.run(RESYNC_S + 10)

        assert before == world.kafka.state()
        changing = ("create", "alter", "grow", "delete", "elect")
        assert [call for call in world.gate.calls if call.split(" ")[1].startswith(changing) and "kafka" in call] == []


@in_virtual_time
async def test_a_topic_that_moves_is_written_with_the_replicas_that_it_will_have() -> None:
    """While it moves it shows the union of both."""
    kafka = FakeKafka(Gate())
    kafka.move_s = 1_000
    kafka.add("orders", [(1, 2, 3)])
    kafka.add("uneven", [(1, 2, 3), (1,)])
    await kafka.alter_reassignments({Partition("orders", 0): (2, 3, 4)})
    warnings: list[str] = []

    manifests = {item.name: item.document["spec"] for item in await read_topics(kafka, SELECTION, warnings.append)}

    assert (manifests["orders"]["replicationFactor"], manifests["uneven"]["replicationFactor"]) == (3, 1)
    assert warnings == [
        "partitions of one topic have different numbers of replicas; the smallest number is written: uneven"
    ]


@in_virtual_time
async def test_unreadable_state_is_reported() -> None:
    """No cluster; no right to see moves (a warning), or settings (the end)."""
    kafka = FakeKafka(Gate())
    kafka.add("orders", [(1, 2, 3)])
    kafka.reachable = False
    with pytest.raises(ImportFailedError, match="the fake is down"):
        await read_topics(kafka, SELECTION, lambda _: None)

    kafka.reachable = True
    warnings: list[str] = []

    async def refused() -> Any:
        raise CallRefusedError(Failure(31, "CLUSTER_AUTHORIZATION_FAILED", "Not allowed."))

    async def hidden(names: Any) -> Any:
        return dict.fromkeys(names, Failure(29, "TOPIC_AUTHORIZATION_FAILED", "Not allowed."))

    kafka.list_reassignments = refused
    assert len(await read_topics(kafka, SELECTION, warnings.append)) == 1
    assert "running moves cannot be listed" in warnings[0]
    kafka.describe_all_configs = hidden
    with pytest.raises(ImportFailedError, match="settings of topic orders cannot be read: TOPIC_AUTHORIZATION_FAILED"):
        await read_topics(kafka, SELECTION, warnings.append)


def test_a_folder_gets_a_file_each_and_none_is_replaced_unasked(tmp_path: Path) -> None:
    """What a user has edited is not lost."""
    manifests = manifests_of([kafka_topic("a"), kafka_topic("b", cleanup_policy="compact")], SELECTION)
    folder = tmp_path / "topics"
    write_folder(manifests, folder, overwrite=False)
    assert sorted(path.name for path in folder.iterdir()) == ["a.yaml", "b.yaml"]
    assert manifests[1].document == yaml.safe_load((folder / "b.yaml").read_text(encoding="utf-8"))

    (folder / "a.yaml").write_text("mine", encoding="utf-8")
    (folder / "b.yaml").unlink()
    with pytest.raises(
        ImportFailedError, match=r"already contains these files: a\.yaml\. Use another folder, or --overwrite"
    ):
        write_folder(manifests, folder, overwrite=False)
    assert [path.name for path in folder.iterdir()] == ["a.yaml"]
    write_folder(manifests, folder, overwrite=True)
    assert (folder / "a.yaml").read_text(encoding="utf-8") != "mine"
    with pytest.raises(ImportFailedError, match="cannot be written"):
        write_folder(manifests, folder / "a.yaml", overwrite=False)


CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"


def test_the_file_of_kafkas_own_tools_is_read(tmp_path: Path) -> None:
    """--command-config: SCRAM over TLS with a PEM truststore; mTLS with a keystore; PLAINTEXT for an empty file."""
    ca = tmp_path / "ca.pem"
    ca.write_text(CERTIFICATE, encoding="ascii")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '    username="steward" password="a \\\\"secret\\\\", \\u00fc=;";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={ca}\n",
        encoding="utf-8",
    )
    login = Login("SCRAM-SHA-512", "steward", 'a "secret", ü=;')
    assert read_client_config(config, []) == Security(tls=True, ca=CERTIFICATE, login=login)

    store = tmp_path / "store.pem"
    store.write_text(f"{PRIVATE_KEY}\n{CERTIFICATE}\n{CERTIFICATE}\n", encoding="ascii")
    found = security_of({"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)})
    assert found.certificate == ClientCertificate(f"{CERTIFICATE}\n{CERTIFICATE}\n", f"{PRIVATE_KEY}\n")
    assert security_of(parse_properties("# nothing\n")) == Security()


TOKEN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
TOKENS = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
ENDPOINT = {"sasl.oauthbearer.token.endpoint.url": "https://login.example.org/token"}


def test_a_client_that_requests_tokens_is_read(tmp_path: Path) -> None:
    """The options of the login module (KIP-768), and the properties of Kafka 4.1 (KIP-1139), which come first."""
    ca = tmp_path / "ca.pem"
    ca.write_text(CERTIFICATE, encoding="ascii")
    store = f'ssl.truststore.type="PEM" ssl.truststore.location="{ca}"'
    options = f'{TOKEN_MODULE} clientId="steward" clientSecret="a \\"secret\\"" scope="read write" {store};'
    properties = {
        "sasl.oauthbearer.client.credentials.client.id": "other",
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "sasl.oauthbearer.scope": "read",
    }
    url = "https://login.example.org/token"

    by_options = security_of(TOKENS | ENDPOINT | {"sasl.jaas.config": options})
    by_properties = security_of(TOKENS | ENDPOINT | properties | {"sasl.jaas.config": options})

    assert by_options.login == ClientCredentials(url, "steward", 'a "secret"', "read write", CERTIFICATE)
    assert by_properties.login == ClientCredentials(url, "other", SECRET, "read", CERTIFICATE)


def test_a_token_of_a_file_is_read(tmp_path: Path) -> None:
    """A token endpoint may be a file (KIP-768); spaces in its address are encoded."""
    file = tmp_path / "a token"
    file.write_text("header.claims.signature\n", encoding="ascii")

    found = security_of(TOKENS | {"sasl.oauthbearer.token.endpoint.url": file.as_uri()})

    assert found.login == BearerToken("header.claims.signature")


MSK = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}


def test_the_region_of_amazon_msk_is_read_from_its_brokers_names() -> None:
    """The properties of AWS's library for Java; a role is assumed if they name one."""
    servers = [f"b-{number}.shop.abc123.c2.kafka.eu-central-1.amazonaws.com:9098" for number in (1, 2)]
    module = "software.amazon.msk.auth.iam.IAMLoginModule required"
    role = "arn:aws:iam::123456789012:role/steward"

    plain = security_of(MSK | {"sasl.jaas.config": f"{module};"}, servers)
    with_role = security_of(MSK | {"sasl.jaas.config": f'{module} awsRoleArn="{role}";'}, servers)
    serverless = security_of(MSK, ["boot-1.c1.kafka-serverless.us-east-1.amazonaws.com:9098"])

    assert plain == Security(tls=True, login=AwsIdentity("eu-central-1"))
    assert with_role.login == AwsIdentity("eu-central-1", role_arn=role)
    assert serverless.login == AwsIdentity("us-east-1")


def test_a_cluster_of_amazon_msk_in_china_is_refused() -> None:
    """Its tokens have another host, for which Steward has no test."""
    with pytest.raises(ClientConfigError, match="requires bootstrap servers of one region"):
        security_of(MSK, ["b-1.shop.c2.kafka.cn-north-1.amazonaws.com.cn:9098"])


SECRET = "hunter2"
BAD_CONFIGS = [
    ({"security.protocol": "TLS"}, "security.protocol is not one of"),
    (MSK, "sasl.mechanism AWS_MSK_IAM requires bootstrap servers of one region"),
    (MSK | {"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism AWS_MSK_IAM requires security.protocol=SASL_SSL"),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism is not one of"),
    (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": f'x password="{SECRET}";'},
        "sasl.jaas.config has no username or no password",
    ),
    (TOKENS, "sasl.oauthbearer.token.endpoint.url is neither an https address nor a file address"),
    (
        TOKENS | {"sasl.oauthbearer.token.endpoint.url": "http://login.example.org/token"},
        "sasl.oauthbearer.token.endpoint.url is neither an https address nor a file address",
    ),
    (
        TOKENS | ENDPOINT | {"sasl.oauthbearer.client.credentials.client.secret": SECRET},
        "sasl.oauthbearer.client.credentials.client.id or",
    ),
    (TOKENS | {"sasl.oauthbearer.token.endpoint.url": "file:///no-such-token"}, "/no-such-token cannot be read"),
    ({"security.protocol": "SSL", "ssl.truststore.location": "a.jks"}, "ssl.truststore.type is not PEM"),
    (
        {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.key": SECRET},
        "has to hold one private key",
    ),
    (
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""},
        "names in certificates are always verified",
    ),
    (
        {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "no-such.pem"},
        "no-such.pem cannot be read: No such file or directory",
    ),
]


@pytest.mark.parametrize(("properties", "message"), BAD_CONFIGS, ids=lambda value: str(value)[:30])
def test_an_unusable_file_is_reported_by_its_property(properties: dict[str, str], message: str) -> None:
    """And no secret of it is shown."""
    with pytest.raises(ClientConfigError, match=message) as caught:
        security_of(properties)
    assert SECRET not in str(caught.value)


class OneTopic(FakeAdmin):
    """A cluster with one topic."""

    def __init__(self, servers: list[str], metrics: object, security: Security) -> None:
        super().__init__(servers, metrics, security)
        self.add("Orders", [(1, 2)])


def test_the_command_writes_a_stream_or_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The documents alone on the standard output; words on the other; exit code 1 when it fails."""
    monkeypatch.setattr(steward.import_command, "KafkaAdmin", OneTopic)
    name = resource_names(["Orders"])["Orders"]
    arguments = ["import", "--bootstrap-server", "a:9092, b:9092", "--cluster", "main", "--include", "O*"]

    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert OneTopic.reached == (["a:9092", "b:9092"], Security())
    assert [document["metadata"]["name"] for document in documents(done.stdout)] == [name]
    assert "1 Topics written" in done.stderr

    done = CliRunner().invoke(app, [*arguments, "--output", str(tmp_path), "--policy", "Observe"])
    assert done.exit_code == 0, done.output
    assert yaml.safe_load((tmp_path / f"{name}.yaml").read_text(encoding="utf-8"))["spec"]["policy"] == "Observe"

    monkeypatch.setattr(OneTopic, "down", True)
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "steward import: No broker answers." in done.stderr


def test_a_server_that_is_not_host_and_port_is_an_error_of_the_options() -> None:
    """Exit code 2, as for every wrong option, and no traceback."""
    done = CliRunner().invoke(app, ["import", "--bootstrap-server", "a:9092,nonsense", "--cluster", "main"])

    assert done.exit_code == 2
    assert "'nonsense' is not HOST:PORT" in done.stderr


def test_a_config_value_that_kafka_hides_is_left_out() -> None:
    """A password is none of a manifest's business."""
    topic = kafka_topic("a")
    hidden = type(topic)(topic.name, topic.topic_id, topic.partitions, {"x": ConfigValue(None, "PASSWORD")})

    assert "config" not in manifests_of([hidden], SELECTION)[0].document["spec"]
