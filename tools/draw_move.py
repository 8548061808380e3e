"""Picture of a move for README.md, from a real run: `python tools/draw_move.py` writes `docs/pictures/move.svg`.

Starts four brokers of Kafka 4.3, a Kubernetes API server and the operator, applies `examples/topic.yaml` and `examples/reassignment.yaml`, and draws
what kubectl prints. Only the throttle is added to the example: without one the move would be too short to watch.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text

from lab.folder import lab_folder
from lab.kraft import CONTROLLER_ID, kraft_cluster
from lab.kube_binaries import kube_binaries
from lab.kubernetes import KubernetesApi, kubernetes_api
from lab.steward import StewardOperator
from lab.waiting import wait_until
from tests.kafka_operator.live import install_crds
from tests.kafka_operator.stock import Stock

ROOT = Path(__file__).resolve().parents[1]

PICTURE = ROOT / "docs" / "pictures" / "move.svg"

BROKERS = (1, 2, 3, 4)

RECORDS = 4000
"""Of 10 kB: 40 MB, a third of which each of brokers 2, 3 and 4 copies or sends."""

THROTTLE = {"bytesPerSecond": 1_000_000}

TIMEOUT_S = 180.0

SMALL_FETCHES = {"replica.fetch.max.bytes": "65536"}
"""A throttled follower exceeds its rate by one fetch, so that small ones show even progress."""

WIDTH = 110
"""Columns of the terminal: the longest line of `kubectl get --watch`."""

_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that a browser would download; without them it uses its own monospaced font."""


class Terminal:
    """The commands of the picture and their real output."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._console = Console(record=True, width=WIDTH, file=sys.stdout, force_terminal=True)

    def show(self, command: str, output: str) -> None:
        """Add a command and its output."""
        self._console.print(Text("$ ", style="bold green") + Text(command, style="bold"))
        self._console.print(Text("\n".join(line.rstrip() for line in output.splitlines()) + "\n"))

    def run(self, command: str, stdin: str | None = None) -> None:
        """Run kubectl, and add the command and what it prints; `stdin` takes the place of the named file."""
        arguments = command.split()[1:]
        if stdin is not None:
            arguments[-1] = "-"
        self.show(command, self._api.kubectl(*arguments, stdin=stdin, check=True).stdout)

    def save(self) -> None:
        """Write the picture."""
        picture = self._console.export_svg(title="Steward: a move under a throttle, Kafka 4.3")
        PICTURE.write_text(_FONTS.sub("", picture), encoding="utf-8")


def watched(api: KubernetesApi, name: str) -> tuple[str, str]:
    """Follow a Reassignment to its end with `kubectl get --watch`; return the command and the lines that differ in their progress."""
    command = f"kubectl get reassignments.steward.dev {name} --watch"
    process = subprocess.Popen(
        [kube_binaries().kubectl, f"--kubeconfig={api.kubeconfig}", *command.split()[1:]],
        stdout=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(TIMEOUT_S, process.kill)
    timer.start()
    lines: list[str] = []
    try:
        for line in process.stdout or ():
            if "Completed" in line or _progress(line) not in {_progress(shown) for shown in lines}:
                lines.append(line)
            if line.split()[-2:-1] == ["Completed"]:
                break
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    return command, "".join(lines)


def _progress(line: str) -> str:
    """Return state, percent and partitions of a line: bytes and time left change more often."""
    return " ".join(line.split()[2:5])


def main() -> None:
    """Run the move and draw it."""
    topic, reassignment = (
        yaml.safe_load((ROOT / "examples" / name).read_text("utf-8")) for name in ("topic.yaml", "reassignment.yaml")
    )
    reassignment["spec"]["throttle"] = THROTTLE
    with (
        lab_folder() as folder,
        kubernetes_api(folder / "kubernetes") as api,
        kraft_cluster(BROKERS, controller_id=CONTROLLER_ID, settings=SMALL_FETCHES) as kafka,
    ):
        install_crds(api)
        operator = StewardOperator(api.kubeconfig, folder)
        try:
            operator.start()
            _draw(api, Stock(kafka.bootstrap()), topic, reassignment)
        finally:
            operator.close()


def _draw(api: KubernetesApi, stock: Stock, topic: dict[str, Any], reassignment: dict[str, Any]) -> None:
    terminal = Terminal(api)
    cluster = {
        "apiVersion": "steward.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "main"},
        "spec": {"bootstrapServers": stock.bootstrap.split(",")},
    }
    api.kubectl("apply", "--filename=-", stdin=json.dumps(cluster), check=True)
    api.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "clusters.steward.dev/main", check=True)
    stock.create("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]])
    stock.set_config("orders", "min.insync.replicas", "2")
    stock.fill("orders", RECORDS)
    terminal.run("kubectl apply --filename examples/topic.yaml", json.dumps(topic))
    api.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "topics.steward.dev/orders", check=True)
    terminal.run("kubectl get topics.steward.dev")
    terminal.run("kubectl apply --filename examples/reassignment.yaml", json.dumps(reassignment))
    name = reassignment["metadata"]["name"]
    wait_until(
        lambda: (
            api.kubectl("get", "reassignments.steward.dev", name, "--output=jsonpath={.status.state}").stdout
            == "Running"
        ),
        timeout_s=TIMEOUT_S,
        what="the move runs",
    )
    terminal.show(*watched(api, name))
    terminal.save()


if __name__ == "__main__":
    main()
