"""Plain encoder: interprets a schema field by field, checks everything, and names the invalid field.

It is the slow reference of the generated encoders (compiler.py): tests require the same bytes of both, and when a generated
encoder fails, this one reports the reason. The rules are those of Kafka's MessageDataGenerator.
"""

import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_wire.failures import CodecError
from kafka_wire.schema import Field, Message
from kafka_wire.varints import write_uvarint

MAX_STRING_BYTES = 0x7FFF
"""The length of a classic string is an int16, and Kafka applies the same limit to compact strings."""

FIXED_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
}


def is_default(field: Field, value: object) -> bool:
    """Return whether a value is the field's default: then a tagged field is omitted, and a version may lack the field."""
    if field.is_array and value is not None and field.default is not None:
        return isinstance(value, Sequence) and not value
    if field.kind == "struct" and isinstance(value, Mapping) and field.default is not None:
        return all(is_default(inner, value.get(inner.key, inner.default)) for inner in field.fields)
    return bool(value == field.default)


@dataclass(slots=True)
class _Encoding:
    message: str
    version: int
    flexible: bool

    def error(self, path: str, reason: str) -> CodecError:
        return CodecError(reason, message=self.message, version=self.version, field=path)

    def length(self, field: Field, length: int) -> bytes:
        """Encode the length or count before a variable-length value; -1 means null."""
        if self.flexible and not field.never_flexible:
            return write_uvarint(length + 1)
        return struct.pack(">h" if field.kind == "string" and not field.is_array else ">i", length)

    def struct(self, fields: tuple[Field, ...], body: object, path: str) -> bytes:
        if not isinstance(body, Mapping):
            raise self.error(path, f"expected a dict, got {type(body).__name__}")
        prefix = f"{path}." if path else ""
        unknown = body.keys() - {field.key for field in fields}
        if unknown:
            raise self.error(path, f"unknown key {min(map(str, unknown))!r}")
        out, tagged = bytearray(), {}
        for field in fields:
            value = body.get(field.key, field.default)
            where = prefix + field.key
            if self.version not in field.versions:
                if not field.ignorable and not is_default(field, value):
                    raise self.error(where, "this version lacks the field, and its value is not the default")
            elif field.tag is None:
                out += self.value(field, value, where)
            elif not is_default(field, value):
                tagged[field.tag] = self.value(field, value, where)
        if self.flexible:
            out += write_uvarint(len(tagged))
            for tag, encoded in sorted(tagged.items()):
                out += write_uvarint(tag) + write_uvarint(len(encoded)) + encoded
        return bytes(out)

    def value(self, field: Field, value: object, path: str) -> bytes:
        nullable_struct = field.kind == "struct" and not field.is_array and self.version in field.nullable
        if value is None:
            if self.version not in field.nullable:
                raise self.error(path, "must not be null")
            return b"\xff" if nullable_struct else self.length(field, -1)
        if field.is_array:
            return self.array(field, value, path)
        if field.kind == "struct":
            return (b"\x01" if nullable_struct else b"") + self.struct(field.fields, value, path)
        if field.kind in FIXED_FORMATS:
            try:
                return struct.pack(">" + FIXED_FORMATS[field.kind], value)
            except (struct.error, OverflowError):
                raise self.error(path, f"{value!r:.80} is not a valid {field.kind}") from None
        if field.kind == "uuid":
            if not isinstance(value, uuid.UUID):
                raise self.error(path, f"expected a uuid.UUID, got {type(value).__name__}")
            return value.bytes
        raw = self.raw(field, value, path)
        return self.length(field, len(raw)) + raw

    def raw(self, field: Field, value: object, path: str) -> bytes:
        """Return the payload of a string, bytes or records."""
        if field.kind != "string":
            if not isinstance(value, bytes | bytearray | memoryview):
                raise self.error(path, f"expected bytes, got {type(value).__name__}")
            return bytes(value)
        if not isinstance(value, str):
            raise self.error(path, f"expected a str, got {type(value).__name__}")
        try:
            raw = value.encode()
        except UnicodeEncodeError:
            raise self.error(path, "has characters that UTF-8 cannot encode") from None
        if len(raw) > MAX_STRING_BYTES:
            raise self.error(path, f"a string of {len(raw)} bytes exceeds the limit of {MAX_STRING_BYTES}")
        return raw

    def array(self, field: Field, value: object, path: str) -> bytes:
        if not isinstance(value, list | tuple):
            raise self.error(path, f"expected a list, got {type(value).__name__}")
        element = field.elements()
        encoded = [self.value(element, item, f"{path}[{index}]") for index, item in enumerate(value)]
        return self.length(field, len(value)) + b"".join(encoded)


def encode(definition: Message, version: int, body: Mapping[str, Any]) -> bytes:
    """Encode a body; raises CodecError with the path of the invalid field."""
    encoding = _Encoding(definition.name, version, version in definition.flexible)
    return encoding.struct(definition.fields, body, "")
