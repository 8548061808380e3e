"""Steward's controller and operator as processes of the lab."""

import sys
from pathlib import Path

import pytest

from lab.peers.steward import LEADERS_STAY, StewardController, StewardOperator, StewardProcess
from lab.processes.ports import free_port
from lab.processes.process import Process
from lab.processes.waiting import wait_until

STUB = """
import http.server, os, sys
class Stub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready = os.path.exists("ready")
        body = b'# HELP x y\\nsteward_elections_total{kind="leader"} 3.0\\nsteward_up 1\\n'
        self.send_response(200 if self.path == "/metrics" or ready else 503)
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Stub).serve_forever()
"""


@pytest.fixture
def stub(tmp_path: Path) -> StewardProcess:
    """A process whose probe returns 503 until the file `ready` exists."""
    port = free_port()
    process = Process("stub", [sys.executable, "-c", STUB, str(port)], tmp_path)
    return StewardProcess(process, probe_port=port, probe_path="/readyz", metrics_port=port)


def test_a_process_is_ready_when_its_probe_returns_200(stub: StewardProcess, tmp_path: Path) -> None:
    """It may answer long before that: 503 is not ready."""
    stub.launch()
    wait_until(lambda: stub.metrics() != "", timeout_s=30, what="the stub answers")
    assert not stub.ready

    (tmp_path / "ready").touch()
    stub.wait_until_ready()

    assert stub.ready
    stub.close()
    assert not stub.ready


def test_a_metric_is_read_by_its_name_and_labels(stub: StewardProcess, tmp_path: Path) -> None:
    """Prometheus' text format."""
    (tmp_path / "ready").touch()
    stub.start()

    assert stub.metric('steward_elections_total{kind="leader"}') == 3.0
    assert stub.metric("steward_up") == 1.0
    assert stub.metric("steward_down") is None
    stub.close()


def test_the_controller_gets_its_zookeeper_id_and_listeners(tmp_path: Path) -> None:
    """The command line that a user types."""
    controller = StewardController("127.0.0.1:2181/kafka", tmp_path, arguments=["--verbose"])

    assert controller.process.command == [
        *[sys.executable, "-m", "steward", "controller"],
        "--zookeeper=127.0.0.1:2181/kafka",
        "--id=1000",
        f"--listener=INTERNAL={controller.address('INTERNAL')}",
        f"--listener=CLIENT={controller.address('CLIENT')}",
        f"--metrics-port={controller.metrics_port}",
        LEADERS_STAY,
        "--verbose",
    ]
    controller.close()


def test_the_operator_gets_its_kubeconfig_and_ports(tmp_path: Path) -> None:
    """Metrics and health are on ports of their own."""
    operator = StewardOperator(tmp_path / "kubeconfig", tmp_path)

    assert f"--kubeconfig={tmp_path / 'kubeconfig'}" in operator.process.command
    assert f"--metrics-port={operator.metrics_port}" in operator.process.command
    operator.close()
