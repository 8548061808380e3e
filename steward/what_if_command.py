"""`steward what-if`: reads a cluster, computes the effects of a scenario and prints them. Changes nothing."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

from rich.console import Console

from controller_core.views.what_if import (
    Scenario,
    ScenarioError,
    Snapshot,
    WhatIfDocument,
    drain_brokers,
    lose_brokers,
    lose_rack,
    remove_brokers,
    what_if,
)
from kafka_operator.admin.client import KafkaAdmin
from kafka_operator.admin.port import AdminError, BadCredentialsError
from kafka_operator.importing.client_config import ClientConfigError, read_client_config
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.quantity import read_bytes
from kafka_operator.what_if.cluster_resource import ClusterName, ClusterResource, ClusterResourceError, cluster_resource
from kafka_operator.what_if.reading import read_cluster
from kafka_wire.net.cluster import split_servers
from steward.options.what_if import OutputFormat, ScenarioOptions, WhatIfSourceOptions
from steward.what_if_tables import show_what_if

EXIT_OK, EXIT_FAILED = 0, 1

MAX_BROKER_IDS = 1_000
"""Ids of one option: more than any rack has."""


class WhatIfError(Exception):
    """The question cannot be answered; the message has the reason and what to do."""


def check_options(source: WhatIfSourceOptions, scenario: ScenarioOptions) -> None:
    """Raise ValueError for options that contradict each other, or that have no valid value."""
    if (source.bootstrap_server is None) == (source.cluster is None):
        raise ValueError("give either --bootstrap-server, or --cluster with the name of a Cluster resource")
    if source.cluster is not None and source.command_config is not None:
        raise ValueError(
            "--command-config belongs to --bootstrap-server; with --cluster the Secrets of the Cluster are used"
        )
    if [scenario.lose, scenario.remove_brokers, scenario.drain].count(None) != 2:
        raise ValueError("give exactly one of --lose, --remove-brokers and --drain")
    if scenario.drain is not None and source.cluster is None:
        raise ValueError("--drain needs --cluster: only a Cluster with spec.brokers has the nodes of its brokers")
    lost_rack(scenario)
    broker_ids(scenario)
    bytes_per_second(scenario)


def lost_rack(scenario: ScenarioOptions) -> str | None:
    """Return the rack that is lost, None if none is; ValueError for anything but rack=RACK and broker=ID,ID."""
    kind, given, name = (scenario.lose or "").partition("=")
    if scenario.lose is not None and (kind not in {"rack", "broker"} or not given or not name):
        raise ValueError(f"--lose {scenario.lose} is neither rack=RACK nor broker=ID,ID")
    return name if kind == "rack" else None


def broker_ids(scenario: ScenarioOptions) -> list[int]:
    """Return the ids in --lose or --remove-brokers; ValueError for anything but ids separated by commas."""
    if lost_rack(scenario) is not None or scenario.drain is not None:
        return []
    text = scenario.remove_brokers or (scenario.lose or "").removeprefix("broker=")
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MAX_BROKER_IDS or not all(part.isascii() and part.isdecimal() for part in parts):
        raise ValueError(f"{text} is not a list of at most {MAX_BROKER_IDS} broker ids, such as 3,4")
    return [int(part) for part in parts]


def bytes_per_second(scenario: ScenarioOptions) -> int | None:
    """Return the given rate; ValueError if it is not positive."""
    if scenario.rate is None:
        return None
    rate = read_bytes(scenario.rate)
    if rate <= 0:
        raise ValueError("--rate must be more than 0 bytes per second")
    return rate


def run_what_if(source: WhatIfSourceOptions, scenario: ScenarioOptions) -> int:
    """Print the effects of a scenario and return the exit code. Raises ValueError for wrong options."""
    check_options(source, scenario)
    try:
        document = asyncio.run(_answer(source, scenario))
    except (BadCredentialsError, ClientConfigError, ClusterResourceError, ScenarioError, WhatIfError) as error:
        sys.stderr.write(f"steward what-if: {error}\n")
        return EXIT_FAILED
    if scenario.output is OutputFormat.JSON:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        show_what_if(document, Console(markup=False, emoji=False, highlight=False))  # names are shown as they are
    return EXIT_OK


async def _answer(source: WhatIfSourceOptions, scenario: ScenarioOptions) -> WhatIfDocument:
    async with AsyncExitStack() as stack:
        resource: ClusterResource | None = None
        if source.cluster is not None:
            name = ClusterName(source.cluster, source.namespace, source.kubeconfig, source.context)
            resource = await stack.enter_async_context(cluster_resource(name))
            servers, security = list(resource.cluster.bootstrap_servers), await resource.security()
        else:
            servers = split_servers(source.bootstrap_server or ())
            security = read_client_config(source.command_config, servers)
        drained = await resource.brokers_on(scenario.drain) if resource is not None and scenario.drain else []
        admin = KafkaAdmin(servers, KafkaMetrics(), security)
        stack.push_async_callback(admin.close)
        try:
            read = await read_cluster(admin)
        except AdminError as error:
            raise WhatIfError(_unreachable(servers, resource, error)) from error
        chosen = _scenario(read.snapshot, scenario, drained)
        try:
            return what_if(read.snapshot, chosen, read.rate(bytes_per_second(scenario)), read.notes)
        except ValueError as error:
            raise WhatIfError(f"the copies cannot be planned: {error}") from error


def _scenario(snapshot: Snapshot, options: ScenarioOptions, drained: list[int]) -> Scenario:
    rack = lost_rack(options)
    if rack is not None:
        return lose_rack(snapshot, rack)
    if options.drain is not None:
        return drain_brokers(snapshot, options.drain, drained)
    ids = broker_ids(options)
    return lose_brokers(snapshot, ids) if options.lose is not None else remove_brokers(snapshot, ids)


def _unreachable(servers: list[str], resource: ClusterResource | None, error: AdminError) -> str:
    text = f"the cluster at {', '.join(servers)} cannot be read: {error}"
    if resource is None:
        return text
    return (
        f"{text}. The addresses of Cluster {resource.cluster.ref} may be reachable only within Kubernetes: run this command in a pod, or "
        "use --bootstrap-server."
    )
