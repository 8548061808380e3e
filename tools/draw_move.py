"""Picture of a move for README.md, from a real run: `python -m tools.draw_move` writes `docs/pictures/move.svg`.

Starts four brokers of Kafka 4.3 with a topic `orders`, a Kubernetes API server and the operator, runs the last command of README.md's first
screen, and draws what kubectl prints. Only a throttle is added to the example: without one the move would be too short to watch.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from rich.console import Console
from rich.text import Text

from lab.downloads.kube_binaries import kube_binaries
from lab.peers.kraft import CONTROLLER_ID, kraft_cluster
from lab.peers.kubernetes import KubernetesApi, kubernetes_api
from lab.peers.steward import StewardOperator
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.stock import Stock

ROOT = Path(__file__).resolve().parents[1]

PICTURE = ROOT / "docs" / "pictures" / "move.svg"

BROKERS = (1, 2, 3, 4)

REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]
"""Of topic `orders` before the move."""

RECORDS = 4000
"""Of 10 kB: 40 MB, all of which broker 4 copies."""

THROTTLE = {"bytesPerSecond": 1_000_000}

SMALL_FETCHES = {"replica.fetch.max.bytes": "65536"}
"""A throttled follower exceeds its rate by one fetch, so that small ones show even progress."""

TIMEOUT_S = 180.0

WIDTH = 110
"""Columns of the terminal: the longest line of `kubectl get --watch`."""

_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that a browser would download; without them it uses its own monospaced font."""


class Terminal:
    """A terminal in a folder: the commands of the picture and their real output."""

    def __init__(self, api: KubernetesApi, folder: Path) -> None:
        self._folder = folder
        self._kubectl = [str(kube_binaries().kubectl), f"--kubeconfig={api.kubeconfig}"]
        self._console = Console(record=True, width=WIDTH, file=sys.stdout, force_terminal=True)

    def run(self, command: str) -> None:
        """Run a command of kubectl, and show it with what it prints."""
        done = subprocess.run(
            [*self._kubectl, *command.split()[1:]],
            check=True,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        self._show(command, done.stdout.splitlines())

    def watch(self, command: str) -> None:
        """Run `kubectl get --watch` until a resource is `Completed`; show the lines that differ in state, percent or partitions."""
        process = subprocess.Popen([*self._kubectl, *command.split()[1:]], stdout=subprocess.PIPE, text=True)
        timer = threading.Timer(TIMEOUT_S, process.kill)
        timer.start()
        try:
            self._show(command, list(_until_completed(process.stdout or ())))
        finally:
            timer.cancel()
            process.kill()
            process.wait()

    def save(self) -> None:
        """Write the picture."""
        picture = self._console.export_svg(title="Steward: a move under a throttle, Kafka 4.3")
        PICTURE.write_text(_FONTS.sub("", picture), encoding="utf-8")

    def _show(self, command: str, lines: list[str]) -> None:
        self._console.print(Text("$ ", style="bold green") + Text(command, style="bold"))
        self._console.print(Text("\n".join(line.rstrip() for line in lines) + "\n"))


def _until_completed(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of other progress, up to the first of a completed resource."""
    shown: set[tuple[str, ...]] = set()
    for line in lines:
        words = line.split()
        if (progress := tuple(words[2:5])) not in shown:
            shown.add(progress)
            yield line
        if words[-2:-1] == ["Completed"]:
            return


def main() -> None:
    """Run the move and draw it."""
    with (
        lab_folder() as folder,
        kubernetes_api(folder / "kubernetes") as api,
        kraft_cluster(BROKERS, controller_id=CONTROLLER_ID, settings=SMALL_FETCHES) as kafka,
    ):
        api.install_definitions(ROOT / "crds")
        operator = StewardOperator(api.kubeconfig, folder)
        try:
            operator.start()
            _draw(api, Stock(kafka.bootstrap()), folder)
        finally:
            operator.close()


def _draw(api: KubernetesApi, stock: Stock, folder: Path) -> None:
    stock.create("orders", REPLICAS)
    stock.set_config("orders", "min.insync.replicas", "2")
    stock.fill("orders", RECORDS)
    cluster = raw_cluster("main", *stock.bootstrap.split(","))
    cluster["metadata"]["namespace"] = "default"
    api.kubectl("apply", "--filename=-", stdin=json.dumps(cluster), check=True)
    api.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "clusters.steward.dev/main", check=True)
    (folder / "examples").mkdir()
    for name in ("topic.yaml", "reassignment.yaml"):
        resource = yaml.safe_load((ROOT / "examples" / name).read_text("utf-8"))
        if resource["kind"] == "Reassignment":
            resource["spec"]["throttle"] = THROTTLE
        (folder / "examples" / name).write_text(json.dumps(resource), encoding="utf-8")

    terminal = Terminal(api, folder)
    terminal.run("kubectl apply --filename examples/topic.yaml --filename examples/reassignment.yaml")
    api.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "topics.steward.dev/orders", check=True)
    terminal.run("kubectl get topics.steward.dev")
    wait_until(
        lambda: "Running" in api.kubectl("get", "reassignments.steward.dev", "orders-to-2-3-4").stdout,
        timeout_s=TIMEOUT_S,
        what="the move runs",
    )
    terminal.watch("kubectl get reassignments.steward.dev orders-to-2-3-4 --watch")
    terminal.save()


if __name__ == "__main__":
    main()
