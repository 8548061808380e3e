r"""Source generator of encoders: the Python source of an encoder for one version of one message.

Goal: a minimum of Python operations per field. Method:
  - one function for each struct, which writes all elements of an array, so that there is one call per array;
  - all fields of a struct are fetched in one C call (`itemgetter`), defaults are merged in only when a key is missing;
  - consecutive fields of fixed width, arrays of such, the classic length before a variable field, and the count 0 of tagged
    fields are packed by one `struct` call (a "run"); with arrays the struct is looked up by their counts;
  - no checks of its own: an invalid value raises an exception, and the plain encoder then reports the reason and the field.

For `{"controller_id": int32, "name": string}` in a flexible version the source is

    def write_0(put, bodies):
        for body in bodies:
            try:
                v0, v1 = get_0(body)
            except KeyError:
                body = {**defaults_0, **body}
                v0, v1 = get_0(body)
            if len(body) != 2:
                check_0(body)
            put(pack_i(v0))
            raw = v1.encode()
            size = len(raw)
            put(SHORT_LENGTHS[size] if size <= 126 else compact_string_length(size))
            put(raw)
            put(b"\\0")
"""

import struct
from collections.abc import Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from kafka_wire import runtime
from kafka_wire.plain_encoder import FIXED_FORMATS, is_default
from kafka_wire.runtime import MAX_SHORT_LENGTH
from kafka_wire.schema import Field, Message


def encoder_source(definition: Message, version: int) -> tuple[str, dict[str, Any]]:
    """Return the source, whose `encode(body) -> bytes` is the encoder, and the namespace to execute it in."""
    module = _Module(version, version in definition.flexible)
    root = module.add_struct(definition.fields)
    module.functions.append(
        f"def encode_pieces(body):\n    out = []\n    write_{root}(out.append, (body,))\n    return out\n\n"
        "def encode(body):\n    return join(encode_pieces(body))"
    )
    return "\n\n".join(module.functions), module.namespace


class _Module:
    """Functions generated so far, and the objects that they use."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.functions: list[str] = []
        self.structs = 0
        self.namespace: dict[str, Any] = {
            "join": b"".join,
            "SHORT_LENGTHS": runtime.SHORT_LENGTHS,
            "compact_length": runtime.compact_length,
            "compact_string_length": runtime.compact_string_length,
            "elements_of": runtime.elements_of,
            "encode_tags": runtime.encode_tags,
        }

    def add_struct(self, fields: tuple[Field, ...]) -> int:
        """Generate the function of a struct, after those of the structs in it; returns its number."""
        writer = _StructWriter(self, fields)
        body = writer.body()
        number = self.structs
        self.structs += 1
        present = [field for field in fields if self.version in field.versions]
        untagged = [field.key for field in present if field.tag is None]
        self.namespace[f"defaults_{number}"] = {field.key: field.default for field in fields}
        self.namespace[f"check_{number}"] = runtime.body_check(fields, self.version)
        lines = [*_fetch(number, untagged), f"if len(body) != {len(untagged)}:", f"    check_{number}(body)", *body]
        if len(untagged) > 1:
            self.namespace[f"get_{number}"] = itemgetter(*untagged)
        self.functions.append(
            "\n".join([f"def write_{number}(put, bodies):", "    for body in bodies:", *_indented(lines, 2)])
        )
        return number

    def pack(self, codes: str) -> str:
        """Return the name of the packer of a run."""
        name = "pack_" + codes.replace("?", "o")
        self.namespace[name] = struct.Struct(">" + codes).pack
        return name

    def packers(self, layout: tuple[str, ...]) -> str:
        """Return the name of the packers of a run with arrays, cached by their counts."""
        name = "packers_" + "".join(layout).replace("?", "o").replace("[", "_").replace("]", "_")
        self.namespace[name] = runtime.RunPackers(layout, self.flexible)
        return name


def _indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]


def _fetch(number: int, keys: list[str]) -> list[str]:
    """Return the lines that fetch the values of a struct: v0, v1 and so on."""
    if not keys:
        return []
    fetch = f"v0 = body[{keys[0]!r}]"
    if len(keys) > 1:
        fetch = ", ".join(f"v{index}" for index in range(len(keys))) + f" = get_{number}(body)"
    merge = f"body = {{**defaults_{number}, **body}}"
    return ["try:", f"    {fetch}", "except KeyError:", f"    {merge}", f"    {fetch}"]


class _StructWriter:
    """Generator of the lines that write a struct's fields."""

    def __init__(self, module: _Module, fields: tuple[Field, ...]) -> None:
        self.module = module
        self.fields = [field for field in fields if module.version in field.versions]
        self.lines: list[str] = []
        self.run: list[tuple[str, str]] = []

    def body(self) -> list[str]:
        untagged = [field for field in self.fields if field.tag is None]
        for index, field in enumerate(untagged):
            self.value(field, f"v{index}")
        if self.module.flexible:
            self.tags([field for field in self.fields if field.tag is not None])
        self.flush()
        return self.lines

    def flush(self) -> None:
        """End the run: one call packs all its fields."""
        if not self.run:
            return
        codes = [code for code, _ in self.run]
        arguments = ", ".join(expression for _, expression in self.run if expression)
        arrays = [expression.partition("*")[2] for code, expression in self.run if code.startswith("[")]
        if codes == ["x"]:
            self.lines.append("put(b'\\0')")
        elif arrays:
            packers = self.module.packers(tuple(codes))
            counts = "".join(f"len({array}), " for array in arrays)
            self.lines += [*self.only_lists(arrays), f"put({packers}[{counts}]({arguments}))"]
        else:
            self.lines.append(f"put({self.module.pack(''.join(codes))}({arguments}))")
        self.run = []

    @staticmethod
    def only_lists(arrays: Iterable[str]) -> Iterator[str]:
        """Yield the lines that reject iterables that are not arrays."""
        for array in arrays:
            yield f"if {array}.__class__ is not list:"
            yield f"    elements_of({array})"

    def value(self, field: Field, value: str) -> None:
        nullable = self.module.version in field.nullable
        if not field.is_array and field.kind in FIXED_FORMATS:
            self.run.append((FIXED_FORMATS[field.kind], value))
        elif not field.is_array and field.kind == "uuid":
            self.run.append(("16s", f"{value}.bytes"))
        elif nullable:
            self.flush()
            self.lines += [f"if {value} is None:", f"    put({self.null(field)!r})", "else:"]
            outer, self.lines = self.lines, []
            if field.kind == "struct" and not field.is_array:
                self.run.append(("b", "1"))
            self.present(field, value)
            self.flush()
            self.lines = outer + _indented(self.lines)
        else:
            self.present(field, value)

    def null(self, field: Field) -> bytes:
        if field.kind == "struct" and not field.is_array:
            return b"\xff"
        if self.compact(field):
            return b"\0"
        return b"\xff" * self.classic_width(field)

    def compact(self, field: Field) -> bool:
        return self.module.flexible and not field.never_flexible

    @staticmethod
    def classic_width(field: Field) -> int:
        return 2 if field.kind == "string" and not field.is_array else 4

    def present(self, field: Field, value: str) -> None:
        """Write a value of variable length that is not null."""
        if field.is_array:
            self.array(field, value)
        elif field.kind == "struct":
            number = self.module.add_struct(field.fields)
            self.flush()
            self.lines.append(f"write_{number}(put, ({value},))")
        elif field.kind == "string":
            self.lines.append(f"raw = {value}.encode()")
            self.length(field, "raw")
            self.lines.append("put(raw)")
        else:
            self.length(field, value)
            self.lines.append(f"put({value})")

    def length(self, field: Field, sized: str) -> None:
        """Write the length or count of `sized`; the classic form ends the run, the compact form follows it."""
        if not self.compact(field):
            self.run.append(("h" if self.classic_width(field) == 2 else "i", f"len({sized})"))
            self.flush()
            return
        self.flush()
        longer = "compact_string_length" if field.kind == "string" and not field.is_array else "compact_length"
        self.lines.append(f"size = len({sized})")
        self.lines.append(f"put(SHORT_LENGTHS[size] if size <= {MAX_SHORT_LENGTH} else {longer}(size))")

    def array(self, field: Field, value: str) -> None:
        if field.kind in FIXED_FORMATS:
            count = f"len({value}) + 1" if self.compact(field) else f"len({value})"
            self.run.append((f"[{FIXED_FORMATS[field.kind]}]", f"{count}, *{value}"))
            return
        self.lines += self.only_lists([value])
        self.length(field, value)
        if field.kind == "struct":
            self.lines.append(f"write_{self.module.add_struct(field.fields)}(put, {value})")
            return
        self.lines.append(f"for one in {value}:")
        outer, self.lines = self.lines, []
        self.value(field.elements(), "one")
        self.flush()
        self.lines = outer + _indented(self.lines)

    def tags(self, tagged: list[Field]) -> None:
        """Write the tagged fields with non-default values; without any, a zero byte ends the run."""
        if not tagged:
            self.run.append(("x", ""))
            return
        self.flush()
        self.lines.append("tags = []")
        for field in sorted(tagged, key=lambda field: field.tag or 0):
            default, same = f"default_{field.key}", f"is_default_{field.key}"
            self.module.namespace[default] = field.default
            self.module.namespace[same] = partial(is_default, field)
            outer, self.lines = self.lines, []
            self.value(field, "tagged")
            self.flush()
            self.lines = [
                *outer,
                f"tagged = body.get({field.key!r}, {default})",
                f"if tagged is not {default} and not {same}(tagged):",
                "    parts = []",
                "    outer, put = put, parts.append",
                *_indented(self.lines),
                "    put = outer",
                f"    tags.append(({field.tag}, join(parts)))",
            ]
        self.lines.append("put(encode_tags(tags) if tags else b'\\0')")
