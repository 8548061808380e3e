"""The enumerations in the source agree with the tables extracted from Kafka."""

import json
from importlib import resources

from kafka_wire import ApiKey, ErrorCode, schema


def test_api_keys_are_those_of_the_tables() -> None:
    """For a renamed key (74), the newer name is used."""
    keys: dict[int | None, str] = {}
    for kafka in reversed(schema.RELEASES):
        for message in schema.release_messages(kafka).values():
            if message.kind == "request":
                keys[message.api_key] = message.name

    assert keys == {int(key): key.message + "Request" for key in ApiKey}


def test_error_codes_are_those_of_the_table() -> None:
    """Name, code, message and retriable flag of each."""
    table = (resources.files("kafka_wire") / "tables" / "errors.jsonl").read_text()
    own = [
        {"code": int(code), "name": code.name, "message": code.message, "retriable": code.retriable}
        for code in ErrorCode
    ]

    assert list(map(json.loads, table.splitlines())) == own


def test_an_unknown_error_code_is_mapped_to_unknown_server_error() -> None:
    """As in Java's Errors.forCode: a newer broker may send unknown codes."""
    assert ErrorCode(9999) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ErrorCode(41) is ErrorCode.NOT_CONTROLLER
