"""Transcript of requests to a broker and its responses, for golden files."""

import json
from typing import Any
from uuid import UUID

from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.failures import CloseConnection
from kafka_wire.records import decode_batches
from light_broker.shell.broker import Broker
from tests.light_broker.shell.apis.calls import call


class Conversation:
    """Requests and responses in their order."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lines: list[str] = []

    async def ask(
        self, title: str, key: ApiKey, body: Body, *, version: int | None = None, **context: Any
    ) -> Body | None:
        """Send a request, and note it with the response."""
        shown = "latest version" if version is None else f"version {version}"
        self._lines += [f"# {title}", f"{key.message} ({shown}) {_shown(body)}"]
        try:
            answer = await call(self._broker, key, body, version=version, **context)
        except CloseConnection as closed:
            self._lines += [f"-> connection closed: {closed}", ""]
            return None
        self._lines += [f"-> {'no response' if answer is None else _shown(answer)}", ""]
        return answer

    @property
    def text(self) -> str:
        """The transcript."""
        return "\n".join(self._lines)


def _shown(body: Body) -> str:
    return json.dumps(_plain(body), ensure_ascii=False)


def _plain(value: Any, name: str = "") -> Any:
    """Return a value with names of errors, numbers of ids, and records by their values; empty and default fields are left out."""
    if isinstance(value, dict):
        return {
            key: _plain(element, key)
            for key, element in value.items()
            if element not in (None, [], "", -1)
            and element != UUID(int=0)
            and element != {"epoch": -1, "end_offset": -1}
            and not (key in _QUIET and element == 0)
            and not (isinstance(element, dict) and all(part == -1 for part in element.values()))
        }
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if name.endswith("error_code"):
        return ErrorCode.of(value).name
    if isinstance(value, UUID):
        return f"id-{value.int}"
    if isinstance(value, bytes | memoryview):
        return _records(bytes(value))
    return value


_QUIET = frozenset({"throttle_time_ms", "error_code"})
"""Fields that are left out with the value 0."""


def _records(data: bytes) -> str:
    if not data:
        return "empty"
    try:
        decoded = list(decode_batches(data))
    except Exception:  # noqa: BLE001 -- some conversations send damaged records
        return f"{len(data)} bytes"
    return " | ".join(",".join((record.value or b"").decode() for record in batch.records) for batch in decoded)
