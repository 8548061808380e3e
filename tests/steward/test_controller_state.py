"""`steward controller state`: printed state, and errors where no controller answers."""

import json
from collections.abc import Iterator
from io import StringIO

import pytest
from aiohttp import web
from rich.console import Console
from typer.testing import CliRunner

from controller_core.model import Broker, Cluster
from controller_core.model.zookeeper_changes import BrokersObserved
from controller_core.shell.metrics import Metrics
from controller_core.shell.process import Probes
from controller_core.views import debug_state as debug_state_module
from controller_core.views.debug_state import cluster_document, standby_document, topic_document
from controller_core.zookeeper_mode.transitions import apply
from lab.processes.loop_thread import LoopThread
from steward.controller_state import MAX_RESPONSE_BYTES, Document, StateError, fetch, show
from steward.main import app
from tests.controller_core.shell.zookeeper.vocabulary import read_change


@pytest.fixture
def cluster() -> Cluster:
    """Brokers 1 and 2, a topic, a reassignment."""
    cluster = Cluster(1000, 9)
    apply(cluster, BrokersObserved((Broker(1, 101, (), "a"), Broker(2, 102, ()))))
    apply(cluster, read_change(cluster, "topic orders id=7 0=1,2 1=2,1"))
    apply(cluster, read_change(cluster, "known orders-0=1/4/1,2/6 orders-1=-1/0/2/0"))
    apply(cluster, read_change(cluster, "move orders 0=2,1"))
    return cluster


class Served:
    """An HTTP server in its own thread."""

    def __init__(self) -> None:
        self._thread = LoopThread("served")
        self._thread.start()

    def probes(self, cluster: Cluster | None) -> str:
        """Serve the probes of a controller and return their address."""

        def state(topic: str | None) -> debug_state_module.Document | None:
            if topic is not None:
                return None if cluster is None else topic_document(cluster, topic)
            return (
                standby_document(1000) if cluster is None else cluster_document(cluster, "cluster-of-tests", {1: 3}, 0)
            )

        probes = Probes(Metrics(), lambda: None, lambda: None, state)
        self._thread.wait(probes.listen("127.0.0.1", 0))
        return f"127.0.0.1:{probes._runner.addresses[0][1]}"

    def text(self, body: bytes) -> str:
        """Serve a text as the state and return the address."""

        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=body)

        async def listen() -> int:
            application = web.Application()
            application.add_routes([web.get("/state", answer)])
            runner = web.AppRunner(application)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return int(runner.addresses[0][1])

        return f"127.0.0.1:{self._thread.wait(listen())}"

    def close(self) -> None:
        """Stop the server."""
        self._thread.close()


@pytest.fixture
def served() -> Iterator[Served]:
    """A server, stopped after the test."""
    served = Served()
    yield served
    served.close()


def printed(state: Document) -> str:
    """The output on a wide terminal."""
    console = Console(width=160, record=True, file=StringIO())
    show(state, console)
    return console.export_text()


def test_state_of_a_cluster_is_printed(served: Served, cluster: Cluster) -> None:
    """Counts, offline partitions and reassignments."""
    text = printed(fetch(served.probes(cluster), None))

    assert "Controller 1000 is active for cluster cluster-of-tests, controller epoch 9; 0 waiting events." in text
    assert "1 topics, 2 partitions: 1 offline, 1 under-replicated, 2 not led by the preferred replica." in text
    assert "Offline: orders-1" in text
    assert "Reassignments: 1 in total" in text
    assert "orders-0" in text


def test_state_of_a_topic_lists_its_partitions(served: Served, cluster: Cluster) -> None:
    """States have Kafka's names."""
    text = printed(fetch(served.probes(cluster), "orders"))

    assert "Topic orders, id 00000000-0000-0000-0000-000000000007: 2 partitions" in text
    assert "OnlinePartition" in text
    assert "OfflinePartition" in text


def test_state_of_a_standby_is_printed(served: Served) -> None:
    """A standby is no error."""
    assert (
        printed(fetch(served.probes(None), None))
        == "Controller 1000 is on standby: another process is the active controller.\n"
    )


def test_missing_topic_is_an_error(served: Served, cluster: Cluster) -> None:
    """A mistyped name."""
    with pytest.raises(StateError, match="topic order does not exist, or another process is the active controller"):
        fetch(served.probes(cluster), "order")


def test_large_topic_is_read_completely(served: Served, cluster: Cluster) -> None:
    """A large response arrives in several chunks."""
    apply(cluster, read_change(cluster, "topic large " + " ".join(f"{number}=1,2" for number in range(5000))))

    state = fetch(served.probes(cluster), "large")

    assert len(state["partitions"]) == 5000


def test_missing_controller_is_an_error_with_advice() -> None:
    """A wrong port, or another machine."""
    with pytest.raises(
        StateError, match=r"no controller at 127.0.0.1:1 .*give the address of the controller's metrics"
    ):
        fetch("127.0.0.1:1", None)


@pytest.mark.parametrize("address", ["", "host:port:more", "127.0.0.1:99999", "http://x"])
def test_invalid_address_is_an_error(address: str) -> None:
    """Never a traceback."""
    with pytest.raises(StateError, match="no controller at"):
        fetch(address, None)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff"])
def test_response_of_another_server_is_an_error(served: Served, body: bytes) -> None:
    """Another server may listen on the port."""
    with pytest.raises(StateError, match="is not a controller"):
        fetch(served.text(body), None)


def test_response_size_is_limited(served: Served) -> None:
    """Before it is parsed."""
    with pytest.raises(StateError, match="exceeds"):
        fetch(served.text(b" " * (MAX_RESPONSE_BYTES + 1)), None)


def test_command_prints_tables_or_json(served: Served, cluster: Cluster) -> None:
    """Tables by default, JSON on request; the options of a running controller are not needed."""
    address = served.probes(cluster)

    tables = CliRunner().invoke(app, ["controller", "state", "--address", address])
    document = CliRunner().invoke(app, ["controller", "state", "--address", address, "--topic", "orders", "--json"])

    assert (tables.exit_code, document.exit_code) == (0, 0)
    assert "Controller 1000 is active for cluster cluster-of-tests" in tables.output
    assert json.loads(document.output)["topic"] == "orders"


def test_command_reports_an_error_with_exit_code_1() -> None:
    """For scripts."""
    result = CliRunner().invoke(app, ["controller", "state", "--address", "127.0.0.1:1"])

    assert result.exit_code == 1
    assert "steward controller state: no controller at 127.0.0.1:1" in result.output
