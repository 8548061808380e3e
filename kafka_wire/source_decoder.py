"""Source generator of decoders: the Python source of a decoder for one version of one message.

Goal: a minimum of Python operations per field, and no allocation of more than the remaining bytes can contain. Method:
  - one function for each struct, which reads all elements of an array;
  - consecutive fields of fixed width, the length before the first variable field, and the count of tagged fields are unpacked
    by one `struct` call (a "run"). The run contains the first byte of a compact length; a longer one is read again in full;
  - a body is one dict display, which contains the defaults of the fields that the version lacks;
  - invalid input raises an exception (the ends are checked by `struct`, by indexing, and before each slice), and the plain
    decoder then reports the reason and the field.

For `{"controller_id": int32, "name": string}` in a flexible version the source is

    def read_0(data, position, count):
        total = len(data)
        out = []
        for _ in range(count):
            v0, size, = unpack_iB(data, position)
            position += 5
            if size > 127:
                size, position = read_uvarint(data, position - 1)
            size -= 1
            if not 0 <= size <= 32767:
                raise Malformed
            end = position + size
            if end > total:
                raise Malformed
            v1 = data[position:end].decode()
            position = end
            tags = data[position]
            position += 1
            if tags:
                position = skip_tags(data, position - 1)
            out.append({"controller_id": v0, "name": v1})
        return out, position
"""

import struct
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kafka_wire import runtime
from kafka_wire.plain_decoder import least_bytes
from kafka_wire.plain_encoder import FIXED_FORMATS, MAX_STRING_BYTES
from kafka_wire.schema import Field, Message
from kafka_wire.varints import read_uvarint

STRUCT_UNITS = 6
FIELD_UNITS = 2
TEXT_UNITS = 3
TAG_UNITS = 6
"""Units that bounded decoders charge: see element_units."""

VIEW_BYTES = 65_536
"""A larger byte field is a view of its frame in a bounded decoder: a copy of 100 MiB blocks the event loop for 30 ms."""
_SLICE = f"data[position:end] if size <= {VIEW_BYTES} else memoryview(data)[position:end]"


def decoder_source(
    definition: Message, version: int, *, bounded: bool = False, views: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return the source, whose `decode(data, position) -> (body, end)` is the decoder, and its namespace.

    A bounded decoder charges each array to `budget[0]` of the namespace before it creates it, and raises TooManyElements when
    the budget is exhausted. Large byte fields are views of the frame, not copies.

    A decoder with `views` takes a memoryview, and all its byte fields are views of that.
    """
    module = Module(version, version in definition.flexible, bounded=bounded, views=views)
    root = module.add_struct(definition.fields)
    module.functions.append(
        f"def decode(data, position):\n    (body,), position = read_{root}(data, position, 1)\n    return body, position"
    )
    return "\n\n".join(module.functions), module.namespace


def element_units(element: Field) -> int:
    """Return the cost of one array element, in units of about 25 bytes of memory and 60 ns.

    Measured on CPython 3.11 (a busy core takes three times as long). A dict has a key for each field, including those of other versions.
    """
    if element.kind == "struct":
        return STRUCT_UNITS + FIELD_UNITS * len(element.fields)
    return 1 if element.kind in FIXED_FORMATS else TEXT_UNITS


class Module:
    """Functions generated so far, and the objects that they use."""

    def __init__(self, version: int, flexible: bool, *, bounded: bool = False, views: bool = False) -> None:
        self.version = version
        self.flexible = flexible
        self.bounded = bounded
        self.views = views
        self.functions: list[str] = []
        self.structs = 0
        self.namespace: dict[str, Any] = {
            "Malformed": runtime.Malformed,
            "read_uvarint": read_uvarint,
            "skip_tags": runtime.skip_tags,
            "to_uuid": runtime.to_uuid,
            "budget": [0],
            "charge": runtime.charge,
            "memoryview": memoryview,
            "ZERO_UUID": runtime.to_uuid(bytes(16)),
        }

    def add_struct(self, fields: tuple[Field, ...], *, ends: bool = True) -> int:
        """Generate the function of a struct, after those of the structs in it; returns its number.

        Without `ends` the fields are only the beginning of a struct: no tagged fields follow them.
        """
        body = _StructReader(self, fields, ends=ends).body()
        number = self.structs
        self.structs += 1
        head = ["total = len(data)", "out = []", "for _ in range(count):"]
        lines = [f"def read_{number}(data, position, count):", *_indented(head), *_indented(body, 2)]
        self.functions.append("\n".join([*lines, "    return out, position"]))
        return number

    def unpack(self, codes: str) -> str:
        """Return the name of the function that unpacks these `struct` codes."""
        name = "unpack_" + codes.replace("?", "o")
        self.namespace[name] = struct.Struct(">" + codes).unpack_from
        return name


def _indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]


def _literal(field: Field) -> str:
    """Return the source of a field's default: a display, so that bodies share no lists and dicts."""
    if field.default is None:
        return "None"
    if field.is_array:
        return "[]"
    if field.kind == "struct":
        return "{" + ", ".join(f"{inner.key!r}: {_literal(inner)}" for inner in field.fields) + "}"
    return "ZERO_UUID" if field.kind == "uuid" else repr(field.default)


class _StructReader:
    """Generator of the lines that read a struct's fields and append its body to `out`."""

    def __init__(self, module: Module, fields: tuple[Field, ...], *, ends: bool = True) -> None:
        self.module = module
        self.fields = fields
        self.ends = ends
        self.lines: list[str] = []
        self.run: list[tuple[str, str]] = []
        self.uuids: list[str] = []

    def body(self) -> list[str]:
        """Return the lines. A field that the version lacks is only its default in the display."""
        here = [field for field in self.fields if self.module.version in field.versions]
        names = {field.key: f"v{index}" for index, field in enumerate(here)}
        for field in here:
            if field.tag is None:
                self.value(field, names[field.key])
        if self.module.flexible and self.ends:
            self.tags({names[field.key]: field for field in here if field.tag is not None})
        self.flush()
        pairs = (f"{field.key!r}: {names.get(field.key) or _literal(field)}" for field in self.fields)
        return [*self.lines, f"out.append({{{', '.join(pairs)}}})"]

    def flush(self) -> None:
        """End the run: one call unpacks all its fields."""
        if self.run and [code for code, _ in self.run] == ["B"]:
            self.lines += [f"{self.run[0][1]} = data[position]", "position += 1"]
            self.run = []
        elif self.run:
            codes = "".join(code for code, _ in self.run)
            targets = ", ".join(target for _, target in self.run)
            self.lines.append(f"{targets}, = {self.module.unpack(codes)}(data, position)")
            self.lines.append(f"position += {struct.calcsize('>' + codes)}")
            self.lines += [f"{name} = to_uuid({name})" for name in self.uuids]
            self.run, self.uuids = [], []

    def nested(self, write: Callable[[], None]) -> list[str]:
        """Return the lines that `write` generates, flushed, without adding them."""
        outer, self.lines = self.lines, []
        write()
        self.flush()
        made, self.lines = self.lines, outer
        return made

    def value(self, field: Field, target: str) -> None:
        if not field.is_array and field.kind in FIXED_FORMATS:
            self.run.append((FIXED_FORMATS[field.kind], target))
        elif not field.is_array and field.kind == "uuid":
            self.run.append(("16s", target))
            self.uuids.append(target)
        elif field.kind == "struct" and not field.is_array:
            self.struct(field, target)
        else:
            self.length(field)
            self.lines += self.null_check(field, target)
            present = self.nested(lambda: self.present(field, target))
            nullable = self.module.version in field.nullable
            self.lines += _indented(present) if nullable else present

    def struct(self, field: Field, target: str) -> None:
        number = self.module.add_struct(field.fields)
        read = f"({target},), position = read_{number}(data, position, 1)"
        if self.module.version not in field.nullable:
            self.flush()
            self.lines.append(read)
            return
        self.run.append(("b", "present"))
        self.flush()
        self.lines += [f"{target} = None", "if present >= 0:", f"    {read}"]

    def length(self, field: Field) -> None:
        """Read a length or count into `size`; -1 means null."""
        if self.module.flexible and not field.never_flexible:
            self.run.append(("B", "size"))
            self.flush()
            self.lines += ["if size > 127:", "    size, position = read_uvarint(data, position - 1)", "size -= 1"]
        else:
            self.run.append(("h" if field.kind == "string" and not field.is_array else "i", "size"))
            self.flush()

    def null_check(self, field: Field, target: str) -> list[str]:
        """Return the lines between a length and its value: they reject invalid lengths and begin the branch for null."""
        if self.module.version in field.nullable:
            return ["if size < -1:", "    raise Malformed", "if size == -1:", f"    {target} = None", "else:"]
        return ["if size < 0:", "    raise Malformed"]

    def present(self, field: Field, target: str) -> None:
        """Read a value of variable length that is not null: `size` bytes or elements."""
        if field.is_array:
            self.array(field, target)
            return
        if field.kind == "string":
            self.lines += [f"if size > {MAX_STRING_BYTES}:", "    raise Malformed"]
        self.lines += ["end = position + size", "if end > total:", "    raise Malformed"]
        if field.kind == "string":
            decoded = "str(data[position:end], 'utf-8')" if self.module.views else "data[position:end].decode()"
        else:
            decoded = _SLICE if self.module.bounded and not self.module.views else "data[position:end]"
        self.lines += [f"{target} = {decoded}", "position = end"]

    def array(self, field: Field, target: str) -> None:
        element = field.elements()
        if self.module.bounded:
            self.lines.append(f"charge(budget, size * {element_units(element)})")
        if field.kind in FIXED_FORMATS:
            code = FIXED_FORMATS[field.kind]
            name = f"array_{code}".replace("?", "o")
            self.module.namespace[name] = runtime.ArrayUnpackers(code)
            width = struct.calcsize(">" + code)
            self.lines += [f"{target} = list({name}[size](data, position))", f"position += size * {width}"]
            return
        # No schema has elements of zero bytes (tested); max() limits the count for such a schema too.
        least = max(1, least_bytes(element, self.module.version, self.module.flexible))
        self.lines += [f"if size * {least} > total - position:", "    raise Malformed"]
        if field.kind == "struct":
            number = self.module.add_struct(field.fields)
            self.lines.append(f"{target}, position = read_{number}(data, position, size)")
            return
        self.lines += [f"{target} = []", "for _ in range(size):"]
        self.lines += _indented(self.nested(lambda: self.value(element, "one")))
        self.lines.append(f"    {target}.append(one)")

    def tags(self, tagged: dict[str, Field]) -> None:
        """Read the tagged fields; those unknown in this version are skipped, as KIP-482 requires."""
        self.run.append(("B", "tags"))
        self.flush()
        self.lines += [f"{name} = {_literal(field)}" for name, field in tagged.items()]
        self.lines.append("if tags:")
        if self.module.bounded:
            # The count, of one byte or several, is charged before any of the fields is read.
            self.lines.append(f"    charge(budget, read_uvarint(data, position - 1)[0] * {TAG_UNITS})")
        if not tagged:
            self.lines.append("    position = skip_tags(data, position - 1)")
            return
        loop = ["tag, position = read_uvarint(data, position)", "tag_size, position = read_uvarint(data, position)"]
        loop += ["tag_end = position + tag_size", "if tag_end > total:", "    raise Malformed"]
        branch = "if"
        for name, field in tagged.items():
            loop.append(f"{branch} tag == {field.tag}:")
            loop += _indented(self.nested(partial(self.value, field, name)))
            branch = "elif"
        loop += ["else:", "    position = tag_end", "if position != tag_end:", "    raise Malformed"]
        self.lines.append("    tags, position = read_uvarint(data, position - 1)")
        self.lines.append("    for _ in range(tags):")
        self.lines += _indented(loop, 2)
