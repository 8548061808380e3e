"""Options of `steward what-if`. Secrets are never options: they are in the properties file, or in the Secrets of the Cluster."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OutputFormat(StrEnum):
    """Form of the result."""

    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfSourceOptions:
    """The Kafka cluster: by address, or by a Cluster resource."""

    bootstrap_server: Annotated[
        list[str] | None,
        typer.Option(help="HOST:PORT of a broker; repeatable, or several separated by commas. Instead of --cluster."),
    ] = None
    command_config: Annotated[
        Path | None,
        typer.Option(help="Properties file as for Kafka's tools: security.protocol, sasl.*, ssl.* (PEM)."),
    ] = None
    cluster: Annotated[
        str | None, typer.Option(help="Name of a Cluster resource: its addresses and Secrets are used.")
    ] = None
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace of the Cluster; by default that of the context.")
    ] = None
    kubeconfig: Annotated[Path | None, typer.Option(help="Path of a kubeconfig; by default as for kubectl.")] = None
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOptions:
    """The brokers that leave, and the form of the result."""

    lose: Annotated[
        str | None, typer.Option(help="Brokers that fail and do not return: rack=RACK, or broker=ID,ID.")
    ] = None
    remove_brokers: Annotated[
        str | None, typer.Option(help="Ids of brokers that a Reassignment empties (goal.removeBrokers): ID,ID.")
    ] = None
    drain: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Node whose brokers shut down and return (needs --cluster, spec.brokers)."),
    ] = None
    rate: Annotated[
        str | None,
        typer.Option(
            help="Bytes per second that each broker sends and receives for copies, such as 50M or 64Mi. By default the lowest "
            "throttle that is set on a broker, else 50Mi."
        ),
    ] = None
    output: Annotated[
        OutputFormat, typer.Option("--output", "-o", help="table for people, json for programs (docs/what-if.md).")
    ] = OutputFormat.TABLE
