"""`steward controller state`: what a person sees of a controller, and what is said when there is none."""

import json
from collections.abc import Iterator
from io import StringIO

import pytest
from aiohttp import web
from rich.console import Console
from typer.testing import CliRunner

from controller_core.decisions.transition import apply
from controller_core.model.broker import Broker
from controller_core.model.changes import BrokersObserved
from controller_core.model.cluster import Cluster
from controller_core.shell.metrics import Metrics
from controller_core.shell.process import Probes
from controller_core.views import debug_state as inside_module
from controller_core.views.debug_state import cluster_document, standby_document, topic_document
from lab.loop_thread import LoopThread
from steward.controller_state import MAX_ANSWER_BYTES, Document, StateError, fetch, show
from steward.main import app
from tests.controller_core.shell.zookeeper.vocabulary import read_change


@pytest.fixture
def cluster() -> Cluster:
    """Brokers 1 and 2, a topic, a move."""
    cluster = Cluster(1000, 9)
    apply(cluster, BrokersObserved((Broker(1, 101, (), "a"), Broker(2, 102, ()))))
    apply(cluster, read_change(cluster, "topic orders id=7 0=1,2 1=2,1"))
    apply(cluster, read_change(cluster, "known orders-0=1/4/1,2/6 orders-1=-1/0/2/0"))
    apply(cluster, read_change(cluster, "move orders 0=2,1"))
    return cluster


class Served:
    """Something that answers on a port of its own, in a thread of its own."""

    def __init__(self) -> None:
        self._thread = LoopThread("served")
        self._thread.start()

    def probes(self, cluster: Cluster | None) -> str:
        """Serve a controller's own probes; returns their address."""

        def tell(topic: str | None) -> inside_module.Document | None:
            if topic is not None:
                return None if cluster is None else topic_document(cluster, topic)
            return (
                standby_document(1000) if cluster is None else cluster_document(cluster, "cluster-of-tests", {1: 3}, 0)
            )

        probes = Probes(Metrics(), lambda: None, lambda: None, tell)
        self._thread.wait(probes.listen("127.0.0.1", 0))
        return f"127.0.0.1:{probes._runner.addresses[0][1]}"

    def text(self, body: bytes) -> str:
        """Serve some text as the state; returns the address."""

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
        """End it."""
        self._thread.close()


@pytest.fixture
def served() -> Iterator[Served]:
    """Serve something."""
    served = Served()
    yield served
    served.close()


def printed(told: Document) -> str:
    """What a person sees, on a wide terminal."""
    console = Console(width=160, record=True, file=StringIO())
    show(told, console)
    return console.export_text()


def test_the_cluster_is_shown(served: Served, cluster: Cluster) -> None:
    """Who leads, who waits, what moves."""
    text = printed(fetch(served.probes(cluster), None))

    assert "Controller 1000 holds cluster cluster-of-tests under epoch 9; 0 events wait." in text
    assert "1 topics, 2 partitions: 1 offline, 1 under-replicated, 2 not led by the preferred replica." in text
    assert "Offline: orders-1" in text
    assert "Reassignments: 1 in all" in text
    assert "orders-0" in text


def test_a_topic_is_shown_partition_by_partition(served: Served, cluster: Cluster) -> None:
    """Kafka's words for the states."""
    text = printed(fetch(served.probes(cluster), "orders"))

    assert "Topic orders, id 00000000-0000-0000-0000-000000000007: 2 partitions" in text
    assert "OnlinePartition" in text
    assert "OfflinePartition" in text


def test_a_standby_says_so(served: Served) -> None:
    """It is doing its work."""
    assert (
        printed(fetch(served.probes(None), None)) == "Controller 1000 stands by: another process holds the cluster.\n"
    )


def test_a_topic_that_is_not_there_is_said(served: Served, cluster: Cluster) -> None:
    """A mistyped name."""
    with pytest.raises(StateError, match="topic order does not exist, or another process is the active controller"):
        fetch(served.probes(cluster), "order")


def test_a_topic_of_thousands_of_partitions_is_read_whole(served: Served, cluster: Cluster) -> None:
    """An answer comes in pieces."""
    apply(cluster, read_change(cluster, "topic large " + " ".join(f"{number}=1,2" for number in range(5000))))

    told = fetch(served.probes(cluster), "large")

    assert len(told["partitions"]) == 5000


def test_where_nobody_answers_the_words_say_what_to_do() -> None:
    """A wrong port, or another machine."""
    with pytest.raises(StateError, match=r"no controller answers at 127.0.0.1:1 .*give the address of its metrics"):
        fetch("127.0.0.1:1", None)


@pytest.mark.parametrize("address", ["", "host:port:more", "127.0.0.1:99999", "http://x"])
def test_an_address_that_cannot_be_is_said(address: str) -> None:
    """Never a traceback."""
    with pytest.raises(StateError, match="no controller answers at"):
        fetch(address, None)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff"])
def test_what_is_no_controller_is_said(served: Served, body: bytes) -> None:
    """Something else listens there."""
    with pytest.raises(StateError, match="is no controller"):
        fetch(served.text(body), None)


def test_an_answer_without_end_is_not_read(served: Served) -> None:
    """A limit before parsing."""
    with pytest.raises(StateError, match="tells over"):
        fetch(served.text(b" " * (MAX_ANSWER_BYTES + 1)), None)


def test_the_command_prints_tables_or_json(served: Served, cluster: Cluster) -> None:
    """For people by default, for programs when asked; no option of a running controller is needed."""
    address = served.probes(cluster)

    tables = CliRunner().invoke(app, ["controller", "state", "--address", address])
    document = CliRunner().invoke(app, ["controller", "state", "--address", address, "--topic", "orders", "--json"])

    assert (tables.exit_code, document.exit_code) == (0, 0)
    assert "Controller 1000 holds cluster cluster-of-tests" in tables.output
    assert json.loads(document.output)["topic"] == "orders"


def test_the_command_says_what_is_wrong_and_fails() -> None:
    """A script can tell."""
    result = CliRunner().invoke(app, ["controller", "state", "--address", "127.0.0.1:1"])

    assert result.exit_code == 1
    assert "steward controller state: no controller answers at 127.0.0.1:1" in result.output
