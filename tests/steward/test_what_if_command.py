"""`steward what-if` and `kubectl steward`: options, the table for people, the JSON form, errors."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

import steward.what_if_command
from kafka_operator.decide.kafka.layout import Disks
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.security import Security
from kafka_operator.what_if.cluster_resource import ClusterName, ClusterResource, read_named
from steward.main import app, kubectl_app
from tests.kafka_operator.fake_admin import FakeAdmin
from tests.kafka_operator.fake_kafka import FakeKafka
from tests.kafka_operator.fake_pods import FakePods
from tests.kafka_operator.makers import raw_cluster
from tests.reconciler.fake_kube import FakeKube
from tests.reconciler.gate import Gate

AT = ("--bootstrap-server", "a:9092, b:9092")
GIB = 1024**3

TABLE = """\
What if: loss of rack b, broker 2
4 live brokers, 2 topics, 3 partitions
leaders that move      1
offline                1: single-0
  no live replica      1: single-0
offline already        none
under min ISR          1: orders-1
under min ISR already  none
in fewer racks         3: orders-0, orders-1, single-0
  after the repair     1: single-0
to copy                150.0GiB, 2 replicas
time to copy           27 minutes at 95.3MiB/s for each broker
not copied             1: single-0
disks over capacity    brokers 4
Brokers
┏━━━━┳━━━━━━┳━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━┓
┃ id ┃ rack ┃ state ┃ leaders ┃ replicas ┃ bytes after ┃ free disk after ┃
┡━━━━╇━━━━━━╇━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━┩
│ 1  │ a    │ stays │       1 │        1 │    100.0GiB │        400.0GiB │
│ 2  │ b    │ lost  │   2 > 0 │    3 > 1 │          0B │                 │
│ 3  │ c    │ stays │   0 > 1 │        2 │    150.0GiB │        400.0GiB │
│ 4  │ d    │ stays │       0 │    0 > 2 │    150.0GiB │   lacks 90.0GiB │
└────┴──────┴───────┴─────────┴──────────┴─────────────┴─────────────────┘
"""


class FourBrokers(FakeAdmin):
    """Four brokers in three racks; broker 4 has little space left."""

    def __init__(self, servers: list[str], metrics: object, security: Security) -> None:
        super().__init__(servers, metrics, security)
        self.add("orders", [(1, 2, 3), (2, 3)], min_insync_replicas="2")
        self.add("single", [(2,)])
        self.racks = {1: "a", 2: "b", 3: "c", 4: "d"}
        self.sizes = {Partition("orders", 0): 100 * GIB, Partition("orders", 1): 50 * GIB}
        self.disks = {broker: Disks(500 * GIB, 400 * GIB) for broker in (1, 2, 3)} | {4: Disks(500 * GIB, 60 * GIB)}


@pytest.fixture(autouse=True)
def fake_admin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command reads a fake cluster."""
    monkeypatch.setattr(steward.what_if_command, "KafkaAdmin", FourBrokers)


def run(*arguments: str, columns: int = 80, command: Any = app) -> Result:
    """Run `what-if`."""
    return CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb"}).invoke(command, ["what-if", *arguments])


def test_the_table_has_the_summary_and_fits_80_columns() -> None:
    """The first line states the scenario, the last ones the assumptions."""
    done = run(*AT, "--lose", "rack=b", "--rate", "100M")

    assert done.exit_code == 0, done.output
    assert "\n".join(line.rstrip() for line in done.stdout.splitlines()).partition("Racks")[0] == TABLE
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert FourBrokers.reached == (["a:9092", "b:9092"], Security())


def test_json_is_the_document_alone() -> None:
    """The schema of docs/what-if.md."""
    done = run(*AT, "--remove-brokers", "3,4", "--output", "json")

    document = json.loads(done.stdout)
    assert document["scenario"] == {"action": "remove", "brokers": [3, 4], "description": "removal of brokers 3, 4"}
    assert document["repair"]["rate_source"] == "default"
    assert [broker["state"] for broker in document["brokers"]] == ["stays", "stays", "removed", "removed"]


def test_kubectl_steward_has_the_commands_for_users_of_clusters() -> None:
    """The plugin kubectl-steward; it starts no processes of Steward."""
    through_kubectl = run(*AT, "--lose", "broker=2", "-o", "json", command=kubectl_app)
    direct = run(*AT, "--lose", "broker=2", "-o", "json")
    commands = CliRunner().invoke(kubectl_app, ["--help"]).output

    assert through_kubectl.stdout == direct.stdout
    assert {name: name in commands for name in ("what-if", "plan", "import", "sampler", "controller")} == {
        "what-if": True,
        "plan": True,
        "import": True,
        "sampler": False,
        "controller": False,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --bootstrap-server, or --cluster"),
        ((*AT, "--cluster", "main", "--lose", "rack=a"), "give either --bootstrap-server, or --cluster"),
        (("--cluster", "main", "--command-config", "x", "--lose", "rack=a"), "--command-config belongs to"),
        (AT, "give exactly one of --lose, --remove-brokers and --drain"),
        ((*AT, "--lose", "rack=a", "--remove-brokers", "1"), "give exactly one of"),
        ((*AT, "--drain", "node-1"), "--drain needs --cluster"),
        ((*AT, "--lose", "b"), "--lose b is neither rack=RACK nor broker=ID,ID"),
        ((*AT, "--lose", "rack="), "--lose rack= is neither"),
        ((*AT, "--lose", "broker=1,x"), "1,x is not a list"),
        ((*AT, "--remove-brokers", ""), "is not a list"),
        ((*AT, "--remove-brokers", ",".join(map(str, range(1001)))), "is not a list of at most 1000 broker ids"),
        ((*AT, "--lose", "rack=a", "--rate", "0"), "--rate must be more than 0"),
        ((*AT, "--lose", "rack=a", "--rate", "fast"), "'fast' is not a number of bytes"),
    ],
)
def test_wrong_options_are_refused_with_the_reason(arguments: tuple[str, ...], message: str) -> None:
    """Before anything is read; exit code 2, as for other wrong options."""
    done = run(*arguments, columns=500)

    assert done.exit_code == 2, done.output
    assert message in done.output


def test_an_unknown_broker_or_rack_ends_with_the_known_ones() -> None:
    """Exit code 1, nothing on the standard output."""
    broker, rack = run(*AT, "--lose", "broker=9"), run(*AT, "--lose", "rack=x")

    assert (broker.exit_code, rack.exit_code, broker.stdout + rack.stdout) == (1, 1, "")
    assert broker.stderr == "steward what-if: The cluster has no broker 9. Known brokers: 1, 2, 3, 4.\n"
    assert rack.stderr == "steward what-if: No broker is in rack x. Known racks: a, b, c, d.\n"


def test_an_unreachable_cluster_is_an_error_with_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback."""
    monkeypatch.setattr(FourBrokers, "down", True)

    done = run(*AT, "--lose", "broker=2")

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "steward what-if: the cluster at a:9092, b:9092 cannot be read: No broker answers.\n"


def test_the_page_names_every_field_of_the_json_form() -> None:
    """docs/what-if.md is its reference."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "what-if.md").read_text(encoding="utf-8")
    document = json.loads(run(*AT, "--lose", "rack=b", "--output", "json").stdout)
    nested = [*document["repair"], *document["cluster"], *document["scenario"], *document["spread"]]

    assert [name for name in [*document, *nested] if f"`{name}" not in page] == []


@asynccontextmanager
async def fake_resource(name: ClusterName) -> AsyncIterator[ClusterResource]:
    """A Cluster of three broker pods on nodes of their own."""
    kube = FakeKube(Gate())
    kube.apply(raw_cluster(name.name, "in-kubernetes:9092", brokers={"statefulSet": "main-broker", "firstId": 1}))
    cluster = await read_named(kube, "shop", name.name)
    yield ClusterResource(cluster, kube, FakePods(FakeKafka(Gate()), 3))


@pytest.mark.shows("E18")
def test_the_drain_of_a_node_stops_the_brokers_whose_pods_run_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --cluster the addresses are those of the Cluster."""
    monkeypatch.setattr(steward.what_if_command, "cluster_resource", fake_resource)

    done = run("--cluster", "main", "--drain", "node-1", "--output", "json")
    unknown = run("--cluster", "main", "--drain", "node-7")

    document = json.loads(done.stdout)
    assert document["scenario"] == {"action": "drain", "brokers": [2], "description": "drain of node node-1, broker 2"}
    assert document["offline"]["new"]["listed"] == ["single-0"]
    assert FourBrokers.reached == (["in-kubernetes:9092"], Security())
    assert unknown.stderr == (
        "steward what-if: No broker of Cluster shop/main runs on node node-7. Nodes with brokers: node-0, node-1, node-2.\n"
    )


def test_names_of_racks_are_printed_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets and colons are no markup."""
    odd = {1: "[/b]", 2: "[red]", 3: ":x:", 4: "d"}

    async def layout(self: FakeAdmin, names: Any) -> Any:
        self.racks = odd
        return await FakeKafka.describe_layout(self, names)

    monkeypatch.setattr(FourBrokers, "describe_layout", layout)

    done = run(*AT, "--lose", "rack=[red]")

    assert done.exit_code == 0, done.output
    assert [rack for rack in odd.values() if rack not in done.stdout] == []
