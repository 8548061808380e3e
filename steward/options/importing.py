"""Options of `steward import`. Secrets are never options: the file that Kafka's own tools take holds them."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ImportPolicy(StrEnum):
    """spec.policy of what is written."""

    ENFORCE = "Enforce"
    OBSERVE = "Observe"


class ImportDeletionPolicy(StrEnum):
    """spec.deletionPolicy of what is written."""

    DELETE = "Delete"
    RETAIN = "Retain"
    PROTECT = "Protect"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Which cluster is read, and which of its topics."""

    bootstrap_server: Annotated[
        list[str], typer.Option(help="HOST:PORT of a broker; may be repeated, or several with commas between.")
    ]
    command_config: Annotated[
        Path | None,
        typer.Option(help="Properties as Kafka's own tools take them: security.protocol, sasl.*, ssl.* (PEM)."),
    ] = None
    include: Annotated[
        list[str] | None,
        typer.Option(help="Pattern of topics, as a shell's (orders-*); may be repeated; all by default."),
    ] = None
    exclude: Annotated[list[str] | None, typer.Option(help="Pattern of topics to leave out; may be repeated.")] = None
    internal: Annotated[
        bool, typer.Option("--internal", help="Topics whose names begin with __ as well, such as __consumer_offsets.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    """What the manifests say, and where they are written."""

    cluster: Annotated[str, typer.Option(help="The Cluster that they refer to (spec.clusterRef.name).")]
    cluster_namespace: Annotated[
        str | None, typer.Option(help="Its namespace, where it is another than the Topics'.")
    ] = None
    namespace: Annotated[
        str | None, typer.Option(help="metadata.namespace; left out by default, so that kubectl apply -n says it.")
    ] = None
    policy: Annotated[ImportPolicy | None, typer.Option(help="spec.policy; left out by default, which is Enforce.")] = (
        None
    )
    deletion_policy: Annotated[
        ImportDeletionPolicy,
        typer.Option(help="spec.deletionPolicy: with Retain, deleting a Topic loses no data."),
    ] = ImportDeletionPolicy.RETAIN
    output: Annotated[
        str, typer.Option("--output", "-o", help="A folder for a file each, or - for one stream of documents.")
    ] = "-"
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False
