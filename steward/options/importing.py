"""Options of `steward import`. Secrets are never options: they are in the properties file (`--command-config`)."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ImportPolicy(StrEnum):
    """spec.policy of the Topics."""

    ENFORCE = "Enforce"
    OBSERVE = "Observe"


class ImportDeletionPolicy(StrEnum):
    """spec.deletionPolicy of the Topics."""

    DELETE = "Delete"
    RETAIN = "Retain"
    PROTECT = "Protect"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The cluster, and a selection of its topics."""

    bootstrap_server: Annotated[
        list[str], typer.Option(help="HOST:PORT of a broker; repeatable, or several separated by commas.")
    ]
    command_config: Annotated[
        Path | None,
        typer.Option(help="Properties file as for Kafka's tools: security.protocol, sasl.*, ssl.* (PEM)."),
    ] = None
    include: Annotated[
        list[str] | None,
        typer.Option(help="Shell pattern of topics to import (orders-*); repeatable. By default all."),
    ] = None
    exclude: Annotated[list[str] | None, typer.Option(help="Shell pattern of topics to skip; repeatable.")] = None
    internal: Annotated[
        bool, typer.Option("--internal", help="Include topics whose names start with __, such as __consumer_offsets.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    """Contents and destination of the manifests."""

    cluster: Annotated[str, typer.Option(help="Name of the Cluster resource (spec.clusterRef.name).")]
    cluster_namespace: Annotated[
        str | None,
        typer.Option(
            help="Namespace of the Cluster (spec.clusterRef.namespace), if it differs from that of the Topics."
        ),
    ] = None
    namespace: Annotated[
        str | None, typer.Option(help="metadata.namespace; omitted by default, so that kubectl apply -n sets it.")
    ] = None
    policy: Annotated[
        ImportPolicy | None, typer.Option(help="spec.policy; omitted by default, which means Enforce.")
    ] = None
    deletion_policy: Annotated[
        ImportDeletionPolicy,
        typer.Option(help="spec.deletionPolicy: with Retain, deleting a Topic keeps the Kafka topic and its data."),
    ] = ImportDeletionPolicy.RETAIN
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Folder for one file per Topic, or - for a stream of documents on stdout."),
    ] = "-"
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Overwrite existing files.")] = False
