"""Options of `steward broker`: its properties file, and what that does not have."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from steward.options.metrics import MetricsHost


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """The broker's properties file, its control plane and its metrics."""

    config: Annotated[
        Path | None,
        typer.Argument(
            envvar="STEWARD_CONFIG",
            help="Kafka's properties file of the broker, such as server.properties. Without it the broker has the id 1, listens on "
            "127.0.0.1:9092 and keeps its data in ./steward-broker.",
        ),
    ] = None
    standalone: Annotated[
        bool,
        typer.Option(
            "--standalone",
            envvar="STEWARD_STANDALONE",
            help="Run without controllers: the broker keeps the metadata of its topics in its data folder.",
        ),
    ] = False
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--override",
            metavar="NAME=VALUE",
            help="A setting in place of that in the file; may be given several times.",
        ),
    ] = None
    metrics_host: MetricsHost = "127.0.0.1"
    metrics_port: Annotated[
        int | None,
        typer.Option(
            envvar="STEWARD_METRICS_PORT",
            min=0,
            max=65535,
            help="Port of /metrics, /healthz and /readyz. Without it there are no such endpoints.",
        ),
    ] = None
