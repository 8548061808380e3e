"""Conversations with a broker as text: `> Api VERSION {request}`, then `< {response}`.

Values that differ from run to run are named by their first occurrence. Records are lists of values. A response is written without the
fields that are empty or zero, and names records by their values.
"""

import json
from typing import Any
from uuid import UUID

from kafka_wire import ApiKey, Body
from kafka_wire.net.client import Node
from kafka_wire.records import decode_batches
from tests.light_broker.hosting import records
from tests.light_broker.serving import TIMEOUT_MS

MAX_CONFIGS = 10
"""A response with more configs, as to CreateTopics, is written with their number."""

_KEYS = {key.message: key for key in ApiKey}


class Names:
    """Names for values that differ from run to run."""

    def __init__(self) -> None:
        self._ids: dict[UUID, str] = {}
        self._masked: dict[str, str] = {}

    def mask(self, value: object, name: str) -> None:
        """Show a value by a name."""
        self._masked[str(value)] = name

    def shown(self, value: Any) -> Any:
        """Return a value of a response as the text has it."""
        if isinstance(value, dict):
            shown = {key: self._field(key, element) for key, element in value.items()}
            return {key: element for key, element in shown.items() if element not in (None, 0, "", [], {}, False)}
        if isinstance(value, list | tuple):
            return [self.shown(element) for element in value]
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if isinstance(value, UUID):
            return self._ids.setdefault(value, f"id-{len(self._ids) + 1}") if value.int else None
        if isinstance(value, str | int) and not isinstance(value, bool):
            return self._masked.get(str(value), value)
        return value

    def _field(self, key: str, value: Any) -> Any:
        if key == "configs" and len(value) > MAX_CONFIGS:
            return f"{len(value)} configs"
        if key == "records":
            return [
                (record.value or b"").decode()
                for batch in decode_batches(bytes(value or b""))
                for record in batch.records
            ]
        return self.shown(value)

    def read(self, value: Any) -> Any:
        """Return a value of a request from its text."""
        if isinstance(value, dict):
            return {key: _batch(element) if key == "records" else self.read(element) for key, element in value.items()}
        if isinstance(value, list):
            return [self.read(element) for element in value]
        known = {name: topic_id for topic_id, name in self._ids.items()}
        return known.get(value, value) if isinstance(value, str) else value


def _batch(values: list[str]) -> bytes:
    return records(*values)


async def converse(node: Node, script: str, names: Names) -> str:
    """Send the requests of a script, and return it with the responses that were received."""
    lines: list[str] = []
    for line in script.splitlines():
        if line.startswith("<"):
            continue
        lines.append(line)
        if line.startswith(">"):
            _, api, version, text = line.split(" ", 3)
            lines.append(f"< {await _ask(node, _KEYS[api], int(version), names.read(json.loads(text)), names)}")
    return "\n".join(lines) + "\n"


async def _ask(node: Node, key: ApiKey, version: int, body: Body, names: Names) -> str:
    answer = await node.call(key, body, timeout_ms=TIMEOUT_MS, version=version)
    return json.dumps(names.shown(answer))
