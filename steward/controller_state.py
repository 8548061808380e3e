"""`steward controller state`: look inside a controller on this machine, for people (tables) and programs (JSON).

Leaves out what is told: the controller decides (`controller_core.views.debug_state`).
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

TIMEOUT_S = 10.0
"""The controller answers between two events, within milliseconds."""
MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""A topic of 10,000 partitions takes 2 MB."""

OK = 200

Document = Mapping[str, Any]


class StateError(Exception):
    """The controller did not tell; the words say why and what to do."""


def fetch(address: str, topic: str | None) -> Document:
    """Ask the controller whose metrics are at HOST:PORT. Raises StateError."""
    return asyncio.run(_fetch(address, topic))


async def _fetch(address: str, topic: str | None) -> Document:
    query = {} if topic is None else {"topic": topic}
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as client,
            client.get(f"http://{address}/state", params=query) as answer,
        ):
            body = bytearray()
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise StateError(
                        f"what answers at {address} tells over {MAX_ANSWER_BYTES} bytes: it is no controller"
                    )
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise StateError(
            f"no controller answers at {address} ({error or type(error).__name__}): give the address of its metrics, "
            "and ask from the machine (or within the pod) that it runs on"
        ) from error
    text = body.decode(errors="replace")
    if answer.status != OK:
        raise StateError(text.strip() or f"the controller at {address} answers {answer.status}")
    try:
        told = json.loads(text)
    except ValueError as error:
        raise StateError(f"what answers at {address} is no controller: it tells no state") from error
    if not isinstance(told, dict):
        raise StateError(f"what answers at {address} is no controller: it tells no state")
    return told


def show(told: Document, console: Console) -> None:
    """Print a state for a person."""
    if "partitions_in_all" in told:
        _show_topic(told, console)
    elif not told.get("active"):
        console.print(f"Controller {told.get('controller_id')} stands by: another process holds the cluster.")
    else:
        _show_cluster(told, console)


def _show_cluster(told: Document, console: Console) -> None:
    counts = told["partitions"]
    console.print(
        f"Controller {told['controller_id']} holds cluster {told['cluster_id'] or '(no id yet)'} "
        f"under epoch {told['controller_epoch']}; {told['waiting_events']} events wait."
    )
    console.print(
        f"{told['topics']} topics, {counts['in_service']} partitions: {counts['offline']} offline, "
        f"{counts['under_replicated']} under-replicated, {counts['not_led_by_preferred']} not led by the preferred replica."
    )
    columns = ("id", "state", "rack", "leads", "in_sync", "replicas", "queued_requests", "epoch")
    _table("Brokers", columns, told["brokers"], console)
    if told["unreachable_brokers"]:
        unreachable = ", ".join(map(str, told["unreachable_brokers"]))
        console.print(f"Brokers without the inter-broker listener, counted as down: {unreachable}")
    if told["offline_partitions"]:
        console.print(f"Offline: {', '.join(told['offline_partitions'])}")
    for name, heading, shown in (
        ("reassignments", "Reassignments", ("partition", "stage", "replicas", "adding", "removing", "waits_for")),
        ("deletions", "Deletions", ("topic", "started", "blocked", "waits_for")),
        ("left_behind", "Logs that brokers have still to delete", ("partition", "brokers")),
        ("refused_replicas", "Replicas that their broker refuses", ("partition", "broker", "error")),
    ):
        part = told.get(name)  # A controller of an earlier release does not list refused replicas.
        if part and part["in_all"]:
            _table(f"{heading}: {part['in_all']} in all", shown, part["listed"], console)


def _show_topic(told: Document, console: Console) -> None:
    columns = ("partition", "state", "leader", "leader_epoch", "partition_epoch", "isr", "replicas")
    title = f"Topic {told['topic']}, id {told['topic_id']}: {told['partitions_in_all']} partitions"
    _table(title, columns, told["partitions"], console)


def _table(title: str, columns: Sequence[str], rows: Sequence[Document], console: Console) -> None:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="left")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    console.print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {one}" for key, one in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
