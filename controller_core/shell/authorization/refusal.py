"""The answer to a request that is refused whole, in any version of any API, as its response's table tells.

Where the response has an error code at the top, it says it there; else each element of the response's array that stands for an
element of the request says it, under the element's own name or number.

Leaves out responses that have no place for an error: the connection is closed.
"""

from collections.abc import Callable, Sequence
from typing import Any

from controller_core.model.errors import Failure
from kafka_wire import schema
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.net.server import CloseConnection
from kafka_wire.schema import Field

ERROR_CODES = ("error_code", "partition_error_code")
ERROR_MESSAGE = "error_message"

ALIASES: dict[str, tuple[str, ...]] = {
    "name": ("topic", "topic_name"),
    "topic_name": ("name", "topic"),
    "topic": ("name",),
    "partition_index": ("partition", "index"),
    "user": ("name",),
}
"""What a response's field may be called in the request."""


def _dirs_by_topic(body: Body) -> Body:
    return {"topics": [topic for each in body["dirs"] for topic in each["topics"]]}


def _users(body: Body) -> Body:
    return {"users": list(dict.fromkeys(each["name"] for each in [*body["deletions"], *body["upsertions"]]))}


def _nothing(_: Body) -> Body:
    return {}


RESHAPED: dict[ApiKey, Callable[[Body], Body]] = {
    ApiKey.ALTER_REPLICA_LOG_DIRS: _dirs_by_topic,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _users,
    # Versions without an error at the top answer with no directory at all: clients take that for a refusal.
    ApiKey.DESCRIBE_LOG_DIRS: _nothing,
}
"""Requests whose elements are ordered otherwise than their response's."""


def refusal(key: ApiKey, version: int, body: Body, failure: Failure) -> Body:
    """Write the answer; raises CloseConnection where no response can say it."""
    fields = schema.definition(key.message + "Response", version).fields
    answer = _level(fields, RESHAPED[key](body) if key in RESHAPED else body, failure, version)
    if answer is None:
        raise CloseConnection(f"its {key.name} request is refused: {failure.code.name}")
    return answer


def refuses_at_top(key: ApiKey, version: int) -> bool:
    """Tell whether the response says an error at its top, so that nothing of the request is repeated in it."""
    fields = schema.definition(key.message + "Response", version).fields
    if key in RESHAPED:
        return False
    return any(field.key in ERROR_CODES and version in field.versions for field in fields)


def _level(fields: Sequence[Field], asked: Any, failure: Failure, version: int) -> Body | None:
    """Fill one struct; None where neither it nor anything in it has a place for an error."""
    present = [field for field in fields if version in field.versions]
    body: Body = {
        field.key: found
        for field in present
        if not field.fields and (found := _same(field, asked, present)) is not None
    }
    error = next((field.key for field in present if field.key in ERROR_CODES), None)
    if error is not None:
        body[error] = failure.code
        if any(field.key == ERROR_MESSAGE for field in present):
            body[ERROR_MESSAGE] = failure.message
        return body | _copied(present, asked, version)
    for field in present:
        if field.is_array and field.fields and _has_error(field.fields, version):
            elements = [_level(field.fields, each, failure, version) for each in _counterpart(field, asked)]
            body[field.key] = [each for each in elements if each is not None]
            return body
    return None


def _same(field: Field, asked: Any, present: Sequence[Field]) -> Any:
    """Find what identifies an element in the request."""
    if field.is_array or field.key in {*ERROR_CODES, ERROR_MESSAGE}:
        return None
    if isinstance(asked, dict):
        return next((asked[key] for key in (field.key, *ALIASES.get(field.key, ())) if key in asked), None)
    # An element that is a name or a number by itself: the first field that is no error has its place.
    first = next(each for each in present if not each.is_array and each.key not in {*ERROR_CODES, ERROR_MESSAGE})
    return asked if field is first else None


def _counterpart(field: Field, asked: Any) -> Sequence[Any]:
    """Find the request's array that a response's stands for: the one of its name, or the first that has anything in it."""
    if not isinstance(asked, dict):
        return ()
    if isinstance(asked.get(field.key), list):
        return list(asked[field.key])
    return next((value for value in asked.values() if isinstance(value, list) and value), ())


def _copied(present: Sequence[Field], asked: Any, version: int) -> Body:
    """Repeat structs that tell what is refused (the entity of a quota) and cannot say an error themselves."""
    body: Body = {}
    for field in present:
        given = asked.get(field.key) if isinstance(asked, dict) else None
        if field.is_array and field.fields and isinstance(given, list) and not _has_error(field.fields, version):
            keys = [each.key for each in field.fields if version in each.versions]
            body[field.key] = [{key: each[key] for key in keys if key in each} for each in given]
    return body


def _has_error(fields: Sequence[Field], version: int) -> bool:
    return any(
        version in field.versions and (field.key in ERROR_CODES or _has_error(field.fields, version))
        for field in fields
    )
