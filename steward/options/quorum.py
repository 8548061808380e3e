"""Options of `steward quorum`: what Kafka's properties file does not have."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from steward.options.metrics import MetricsHost, MetricsPort


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumOptions:
    """The node's properties file, its metrics, and the topic of its log."""

    config: Annotated[
        Path,
        typer.Option(
            "--config",
            "-c",
            envvar="STEWARD_CONFIG",
            help="Kafka's properties file of the node, with process.roles=controller.",
        ),
    ]
    metrics_host: MetricsHost = "127.0.0.1"
    metrics_port: MetricsPort = 9404
    topic: Annotated[
        str,
        typer.Option(
            envvar="STEWARD_TOPIC",
            help="Topic of the replicated log. Another one than the default is only for tests, such as with kafka.tools.TestRaftServer.",
        ),
    ] = "__cluster_metadata"
    topic_id: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_TOPIC_ID", help="Id of that topic, in Kafka's form; by default that of __cluster_metadata."
        ),
    ] = None
