"""`steward controller state`: reads /state of a controller on this machine and prints it as tables."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

from kafka_node.http_body import ResponseTooLargeError, read_at_most

TIMEOUT_S = 10.0
"""The controller answers within milliseconds, between two events."""
MAX_RESPONSE_BYTES = 16 * 1024 * 1024
"""A topic of 10,000 partitions takes 2 MB."""

OK = 200

Document = Mapping[str, Any]


class StateError(Exception):
    """The state could not be read; the message names the cause and what to do."""


def fetch(address: str, topic: str | None) -> Document:
    """Read the state from the HOST:PORT of a controller's metrics. Raises StateError."""
    return asyncio.run(_fetch(address, topic))


async def _fetch(address: str, topic: str | None) -> Document:
    query = {} if topic is None else {"topic": topic}
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as client,
            client.get(f"http://{address}/state", params=query) as response,
        ):
            body = await read_at_most(response, MAX_RESPONSE_BYTES)
    except ResponseTooLargeError:
        message = f"the response from {address} exceeds {MAX_RESPONSE_BYTES} bytes: this is not a controller"
        raise StateError(message) from None
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise StateError(
            f"no controller at {address} ({error or type(error).__name__}): give the address of the controller's metrics, "
            "and run this command on the same machine (or in the same pod)"
        ) from error
    text = body.decode(errors="replace")
    if response.status != OK:
        raise StateError(text.strip() or f"the controller at {address} returned HTTP status {response.status}")
    try:
        state = json.loads(text)
    except ValueError as error:
        raise StateError(f"the server at {address} is not a controller: it returned no state") from error
    if not isinstance(state, dict):
        raise StateError(f"the server at {address} is not a controller: it returned no state")
    return state


def show(state: Document, console: Console) -> None:
    """Print the state as tables."""
    if "partitions_in_all" in state:
        _show_topic(state, console)
    elif not state.get("active"):
        console.print(
            f"Controller {state.get('controller_id')} is on standby: another process is the active controller."
        )
    else:
        _show_cluster(state, console)


def _show_cluster(state: Document, console: Console) -> None:
    counts = state["partitions"]
    console.print(
        f"Controller {state['controller_id']} is active for cluster {state['cluster_id'] or '(no id yet)'}, "
        f"controller epoch {state['controller_epoch']}; {state['waiting_events']} waiting events."
    )
    console.print(
        f"{state['topics']} topics, {counts['in_service']} partitions: {counts['offline']} offline, "
        f"{counts['under_replicated']} under-replicated, {counts['not_led_by_preferred']} not led by the preferred replica."
    )
    columns = ("id", "state", "rack", "leads", "in_sync", "replicas", "queued_requests", "epoch")
    _table("Brokers", columns, state["brokers"], console)
    if state["unreachable_brokers"]:
        unreachable = ", ".join(map(str, state["unreachable_brokers"]))
        console.print(f"Brokers without the inter-broker listener, counted as down: {unreachable}")
    if state["offline_partitions"]:
        console.print(f"Offline: {', '.join(state['offline_partitions'])}")
    for name, heading, shown in (
        ("reassignments", "Reassignments", ("partition", "stage", "replicas", "adding", "removing", "waits_for")),
        ("deletions", "Deletions", ("topic", "started", "blocked", "waits_for")),
        ("stray_replicas", "Logs that brokers have not deleted yet", ("partition", "brokers")),
        ("refused_replicas", "Replicas refused by their broker", ("partition", "broker", "error")),
    ):
        part = state.get(name)  # A controller of an earlier release does not have all of these.
        if part and part["in_all"]:
            _table(f"{heading}: {part['in_all']} in total", shown, part["listed"], console)


def _show_topic(state: Document, console: Console) -> None:
    columns = ("partition", "state", "leader", "leader_epoch", "partition_epoch", "isr", "replicas")
    title = f"Topic {state['topic']}, id {state['topic_id']}: {state['partitions_in_all']} partitions"
    _table(title, columns, state["partitions"], console)


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
        return ", ".join(f"{key}: {element}" for key, element in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
