"""Plain decoder: interprets a schema field by field, checks everything, and names the invalid field.

It is the slow reference of the generated decoders (compiler.py): tests require the same values of both, and when a generated
decoder fails, this one reports the reason. Every length is compared with the remaining bytes before it is used.
"""

import struct
import uuid
from dataclasses import dataclass
from typing import Any

from kafka_wire.failures import CodecError
from kafka_wire.plain_encoder import FIXED_FORMATS, MAX_STRING_BYTES
from kafka_wire.schema import Field, Message
from kafka_wire.varints import read_uvarint


def fresh_default(field: Field) -> Any:
    """Return a new copy of a field's default: its lists and dicts are not shared."""
    if field.is_array:
        return None if field.default is None else []
    if field.kind == "struct" and field.default is not None:
        return {inner.key: fresh_default(inner) for inner in field.fields}
    return field.default


@dataclass(slots=True)
class _Decoding:
    message: str
    version: int
    flexible: bool
    data: bytes
    position: int

    def error(self, path: str, reason: str) -> CodecError:
        return CodecError(reason, message=self.message, version=self.version, field=path)

    def take(self, count: int, path: str) -> bytes:
        left = len(self.data) - self.position
        if count > left:
            raise self.error(path, f"needs {count} bytes, {left} are left")
        self.position += count
        return self.data[self.position - count : self.position]

    def uvarint(self, path: str) -> int:
        try:
            value, self.position = read_uvarint(self.data, self.position)
        except IndexError:
            raise self.error(path, "a varint exceeds the end") from None
        except CodecError as error:
            raise self.error(path, error.reason) from None
        return value

    def length(self, field: Field, path: str) -> int:
        """Read a length or count; -1 means null."""
        if self.flexible and not field.never_flexible:
            return self.uvarint(path) - 1
        classic = ">h" if field.kind == "string" and not field.is_array else ">i"
        (length,) = struct.unpack(classic, self.take(struct.calcsize(classic), path))
        if length < -1:
            raise self.error(path, f"invalid length {length}")
        return int(length)

    def struct(self, fields: tuple[Field, ...], path: str) -> dict[str, Any]:
        prefix = f"{path}." if path else ""
        body = {}
        for field in fields:
            if self.version in field.versions and field.tag is None:
                body[field.key] = self.value(field, prefix + field.key)
            else:
                body[field.key] = fresh_default(field)
        if self.flexible:
            self.tags({field.tag: field for field in fields if self.version in field.versions}, body, prefix)
        return body

    def tags(self, known: dict[int | None, Field], body: dict[str, Any], prefix: str) -> None:
        """Read the tagged fields; those unknown in this version are skipped, as KIP-482 requires."""
        for _ in range(self.uvarint(prefix + "tags")):
            tag, size = self.uvarint(prefix + "tags"), self.uvarint(prefix + "tags")
            field = known.get(tag)
            path = f"{prefix}tag {tag}" if field is None else prefix + field.key
            end = self.position + size
            if field is None or end > len(self.data):
                self.take(size, path)
                continue
            body[field.key] = self.value(field, path)
            if self.position != end:
                used = self.position - end + size
                raise self.error(path, f"tag {tag} has {size} bytes, but its value has {used}")

    def value(self, field: Field, path: str) -> Any:
        if field.is_array:
            return self.array(field, path)
        if field.kind == "struct":
            present = self.version not in field.nullable or self.take(1, path) < b"\x80"
            return self.struct(field.fields, path) if present else None
        if field.kind in FIXED_FORMATS:
            fixed = ">" + FIXED_FORMATS[field.kind]
            return struct.unpack(fixed, self.take(struct.calcsize(fixed), path))[0]
        if field.kind == "uuid":
            return uuid.UUID(bytes=self.take(16, path))
        length = self.length(field, path)
        if length == -1:
            self.check_null(field, path)
            return None
        raw = self.take(length, path)
        if field.kind != "string":
            return raw
        if length > MAX_STRING_BYTES:
            raise self.error(path, f"a string of {length} bytes exceeds the limit of {MAX_STRING_BYTES}")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.error(path, "is not valid UTF-8") from None

    def check_null(self, field: Field, path: str) -> None:
        if self.version not in field.nullable:
            raise self.error(path, "must not be null")

    def array(self, field: Field, path: str) -> list[Any] | None:
        count = self.length(field, path)
        if count == -1:
            self.check_null(field, path)
            return None
        element = field.elements()
        # No schema has elements of zero bytes (tested); max() limits the count for such a schema too.
        least = count * max(1, least_bytes(element, self.version, self.flexible))
        left = len(self.data) - self.position
        if least > left:
            raise self.error(path, f"{count} elements need at least {least} bytes, {left} are left")
        return [self.value(element, f"{path}[{index}]") for index in range(count)]


def least_bytes(field: Field, version: int, flexible: bool) -> int:
    """Return the minimum size of a value, which limits a count before a list is created."""
    if field.is_array:
        return 1 if flexible else 4
    if field.kind == "struct":
        if version in field.nullable:
            return 1
        inner = (candidate for candidate in field.fields if version in candidate.versions and candidate.tag is None)
        return sum(least_bytes(candidate, version, flexible) for candidate in inner) + flexible
    if field.kind in FIXED_FORMATS:
        return struct.calcsize(">" + FIXED_FORMATS[field.kind])
    if field.kind == "uuid":
        return 16
    if flexible and not field.never_flexible:
        return 1
    return 2 if field.kind == "string" else 4


def decode(definition: Message, version: int, data: bytes, position: int = 0) -> tuple[dict[str, Any], int]:
    """Decode a body; returns it and the position after it. Raises CodecError with the path of the invalid field."""
    decoding = _Decoding(definition.name, version, version in definition.flexible, data, position)
    return decoding.struct(definition.fields, ""), decoding.position
