"""`steward import`: reads topics and writes Topic manifests (`kafka_operator.importing`)."""

import asyncio
import sys
from pathlib import Path

from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import BadCredentialsError
from kafka_operator.importing.client_config import ClientConfigError, read_client_config
from kafka_operator.importing.manifests import ImportSelection, Manifest
from kafka_operator.importing.run import ImportFailedError, read_topics, write_folder, write_stream
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.security import Security
from kafka_operator.resources.topic import DeletionPolicy, Policy
from kafka_wire.net.cluster import split_servers
from steward.options.importing import ManifestOptions, SourceOptions

STREAM = "-"
EXIT_OK, EXIT_FAILED = 0, 1


def run_import(source: SourceOptions, manifests: ManifestOptions) -> int:
    """Import topics and return the exit code. Progress and errors are written to stderr, manifests to stdout or files.

    Raises ValueError for a server that is not HOST:PORT.
    """
    selection = ImportSelection(
        cluster=manifests.cluster,
        cluster_namespace=manifests.cluster_namespace,
        namespace=manifests.namespace,
        include=tuple(source.include or ()),
        exclude=tuple(source.exclude or ()),
        internal=source.internal,
        policy=None if manifests.policy is None else Policy(manifests.policy),
        deletion_policy=DeletionPolicy(manifests.deletion_policy),
    )
    servers = split_servers(source.bootstrap_server)
    try:
        security = read_client_config(source.command_config, servers)
        found = asyncio.run(_read(servers, security, selection))
        if manifests.output == STREAM:
            write_stream(found, sys.stdout)
        else:
            write_folder(found, Path(manifests.output), overwrite=manifests.overwrite)
    except (BadCredentialsError, ClientConfigError, ImportFailedError) as error:
        _report(str(error))
        return EXIT_FAILED
    where = "" if manifests.output == STREAM else f" to {manifests.output}"
    _report(f"{len(found)} Topics written{where}")
    return EXIT_OK


async def _read(servers: list[str], security: Security, selection: ImportSelection) -> list[Manifest]:
    admin = KafkaAdmin(servers, KafkaMetrics(), security)
    try:
        return await read_topics(admin, selection, _report)
    finally:
        await admin.close()


def _report(text: str) -> None:
    sys.stderr.write(f"steward import: {text}\n")
