"""Options of `steward format`, with the names of kafka-storage format."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """The controller or broker whose directories are formatted, and the metadata of a new cluster."""

    config: Annotated[
        Path,
        typer.Option("--config", "-c", envvar="STEWARD_CONFIG", help="Properties file of the controller or broker."),
    ]
    cluster_id: Annotated[
        str,
        typer.Option(
            "--cluster-id",
            "-t",
            envvar="STEWARD_CLUSTER_ID",
            help="Id of the cluster, equal on all its nodes, as `steward random-uuid` prints it.",
        ),
    ]
    ignore_formatted: Annotated[
        bool,
        typer.Option(
            "--ignore-formatted",
            "-g",
            envvar="STEWARD_IGNORE_FORMATTED",
            help="Skip directories that are already formatted, and format the others.",
        ),
    ] = False
    release_version: Annotated[
        str | None,
        typer.Option(
            "--release-version",
            "-r",
            envvar="STEWARD_RELEASE_VERSION",
            help="Release of Kafka for the first feature levels, from 3.3-IV3; by default 4.3-IV0.",
        ),
    ] = None
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", "-f", envvar="STEWARD_FEATURES", help="FEATURE=LEVEL; repeatable."),
    ] = None
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            "-S",
            envvar="STEWARD_ADD_SCRAM",
            help="First SCRAM user: SCRAM-SHA-256=[name=alice,password=alice-secret], or with iterations, salt and "
            "saltedpassword (base64); repeatable.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterOptions:
    """The voters of a quorum without controller.quorum.voters: one of the three."""

    standalone: Annotated[
        bool,
        typer.Option(
            "--standalone",
            "-s",
            envvar="STEWARD_STANDALONE",
            help="Make a new quorum of which this controller is the only voter.",
        ),
    ] = False
    initial_controllers: Annotated[
        str | None,
        typer.Option(
            "--initial-controllers",
            "-I",
            envvar="STEWARD_INITIAL_CONTROLLERS",
            help="Make a new quorum of these voters: ID@HOST:PORT:DIRECTORY_ID, separated by commas; equal on all nodes.",
        ),
    ] = None
    no_initial_controllers: Annotated[
        bool,
        typer.Option(
            "--no-initial-controllers",
            "-N",
            envvar="STEWARD_NO_INITIAL_CONTROLLERS",
            help="Make no quorum: this controller joins one.",
        ),
    ] = False
