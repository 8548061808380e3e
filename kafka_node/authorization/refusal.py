"""Responses to requests that are refused as a whole, in any version of any API, built from the response's schema.

Where the response has an error code at the top, the error is there; else it is in each element of the response's array that answers
an element of the request, with the element's name or number. Where a response has no field for an error, the connection is closed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from kafka_node.scram_requests import altered_users
from kafka_wire import ApiKey, Body, Failure, schema
from kafka_wire.net.server import CloseConnection
from kafka_wire.schema import Field

MAX_ELEMENTS = 2_000
"""Elements that a refusal repeats, which takes 25 ms. A larger refused request closes its connection."""

ERROR_CODES = ("error_code", "partition_error_code")
ERROR_MESSAGE = "error_message"

ALIASES: dict[str, tuple[str, ...]] = {
    "name": ("topic", "topic_name"),
    "topic_name": ("name", "topic"),
    "topic": ("name",),
    "partition_index": ("partition", "index"),
    "user": ("name",),
}
"""Names that a response's field may have in the request."""


def _dirs_by_topic(body: Body) -> Body:
    return {"topics": [topic for directory in body["dirs"] for topic in directory["topics"]]}


def _users(body: Body) -> Body:
    return {"users": altered_users(body)}


def _nothing(_: Body) -> Body:
    return {}


RESHAPED: dict[ApiKey, Callable[[Body], Body]] = {
    ApiKey.ALTER_REPLICA_LOG_DIRS: _dirs_by_topic,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _users,
    # Versions without an error code at the top return no directory: clients interpret that as a refusal.
    ApiKey.DESCRIBE_LOG_DIRS: _nothing,
}
"""Requests whose elements have another structure than those of the response."""


def refusal(key: ApiKey, version: int, body: Body, failure: Failure) -> Body:
    """Build the response; raises CloseConnection where no response has a field for the error, or it would be too long."""
    answer = _Refusal(key.message + "Response", version, failure).level(
        RESHAPED[key](body) if key in RESHAPED else body
    )
    if answer is None:
        raise CloseConnection(f"its {key.name} request is refused: {failure.code.name}")
    return answer


def refuses_at_top(key: ApiKey, version: int) -> bool:
    """Return whether the response has an error code at the top, so that it repeats nothing of the request."""
    fields = schema.definition(key.message + "Response", version).fields
    if key in RESHAPED:
        return False
    return any(field.key in ERROR_CODES and version in field.versions for field in fields)


class _Shape:
    """The fields of a struct in one version, by their use in a refusal."""

    def __init__(self, fields: Sequence[Field], version: int) -> None:
        self.present = [field for field in fields if version in field.versions]
        self.plain = [field for field in self.present if not field.fields]
        self.error = next((field.key for field in self.present if field.key in ERROR_CODES), None)
        self.has_message = any(field.key == ERROR_MESSAGE for field in self.present)
        self.refused = next(
            (field for field in self.present if field.is_array and field.fields and _has_error(field.fields, version)),
            None,
        )


@cache
def _shape(name: str, version: int, path: tuple[str, ...]) -> _Shape:
    """Return the shape of the response, or of the elements of an array in it."""
    fields = schema.definition(name, version).fields
    for key in path:
        fields = next(field.fields for field in fields if field.key == key)
    return _Shape(fields, version)


@dataclass(slots=True)
class _Refusal:
    """A response that is being written."""

    name: str
    version: int
    failure: Failure
    elements: int = 0

    def level(self, asked: Any, path: tuple[str, ...] = ()) -> Body | None:
        """Fill one struct; None where neither the struct nor its elements have a field for an error."""
        shape = _shape(self.name, self.version, path)
        body: Body = {}
        for field in shape.plain:
            found = _same(field, asked, shape.present)
            if found is not None:
                body[field.key] = found
        if shape.error is not None:
            body[shape.error] = self.failure.code
            if shape.has_message:
                body[ERROR_MESSAGE] = self.failure.message
            return body | _copied(shape.present, asked, self.version)
        if shape.refused is None:
            return None
        key = shape.refused.key
        counterpart = _counterpart(shape.refused, asked)
        self.elements += len(counterpart)
        if self.elements > MAX_ELEMENTS:
            raise CloseConnection(
                f"its request is refused: {self.failure.code.name}; it has more than {MAX_ELEMENTS} elements"
            )
        elements = [self.level(element, (*path, key)) for element in counterpart]
        body[key] = [element for element in elements if element is not None]
        return body


def _same(field: Field, asked: Any, present: Sequence[Field]) -> Any:
    """Find the value that identifies an element of the request."""
    if field.is_array or field.key in {*ERROR_CODES, ERROR_MESSAGE}:
        return None
    if isinstance(asked, dict):
        return next((asked[key] for key in (field.key, *ALIASES.get(field.key, ())) if key in asked), None)
    # The element is a name or a number itself: it belongs to the first field that is not an error field.
    first = next(field for field in present if not field.is_array and field.key not in {*ERROR_CODES, ERROR_MESSAGE})
    return asked if field is first else None


def _counterpart(field: Field, asked: Any) -> Sequence[Any]:
    """Return the request's array that corresponds to a response's array: the one of the same name, or the first non-empty one."""
    if not isinstance(asked, dict):
        return ()
    if isinstance(asked.get(field.key), list):
        return list(asked[field.key])
    return next((value for value in asked.values() if isinstance(value, list) and value), ())


def _copied(present: Sequence[Field], asked: Any, version: int) -> Body:
    """Repeat structs that identify the refused element (the entity of a quota) and have no error code themselves."""
    body: Body = {}
    for field in present:
        given = asked.get(field.key) if isinstance(asked, dict) else None
        if field.is_array and field.fields and isinstance(given, list) and not _has_error(field.fields, version):
            keys = [inner.key for inner in field.fields if version in inner.versions]
            body[field.key] = [{key: element[key] for key in keys if key in element} for element in given]
    return body


def _has_error(fields: Sequence[Field], version: int) -> bool:
    return any(
        version in field.versions and (field.key in ERROR_CODES or _has_error(field.fields, version))
        for field in fields
    )
