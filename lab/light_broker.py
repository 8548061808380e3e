"""A standalone light broker as a process of its own: `steward broker --standalone`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from lab.folder import lab_folder
from lab.http_get import http_get
from lab.java_process import write_properties
from lab.ports import free_port
from lab.process import Process
from lab.steward import steward_command, steward_environment

HOST = "127.0.0.1"

SMALL = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
"""Few partitions and no delay of the first rebalance, as the lab's brokers of Kafka."""


class LightBroker(Process):
    """A light broker that is alone. It can be killed and started again with the same data and ports."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """Prepare it in `folder`; `settings` are those of server.properties in addition to ports and directories."""
        self.port, self.metrics_port = free_port(), free_port()
        self.data_folder = folder / "data"
        config = folder / "server.properties"
        folder.mkdir(parents=True, exist_ok=True)
        base = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(self.data_folder),
            **SMALL,
        }
        write_properties(config, {**base, **(settings or {})})
        command = [*steward_command("broker"), str(config), "--standalone", "--metrics-port", str(self.metrics_port)]
        super().__init__("light-broker", command, folder, environment=steward_environment())

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of its first listener."""
        return f"{HOST}:{self.port}"

    def start(self) -> float:
        """Start it and return the seconds until it serves."""
        self.launch()
        return self.wait_until_ready(self._is_ready)

    def _is_ready(self) -> bool:
        answer = http_get(self.metrics_port, "/readyz")
        return answer is not None and answer.status == HTTPStatus.OK


@contextmanager
def light_broker(settings: Mapping[str, str] | None = None) -> Iterator[LightBroker]:
    """Yield a light broker that serves; it ends with the block, and its folder is deleted."""
    with lab_folder() as folder:
        broker = LightBroker(folder, settings)
        broker.start()
        try:
            yield broker
        finally:
            broker.kill()
