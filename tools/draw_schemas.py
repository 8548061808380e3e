"""Draw Kafka's message schemas out of its jars into `kafka_wire/tables/`.

Kafka's jars carry the definitions that its own codec is generated from. This script keeps the facts of them that
decide bytes: names, types, versions, nullability, tags, defaults, ignorability, api keys. It leaves out every comment
and description, what only documents (entity types, listeners), and what only Java's collections need (map keys).

    python tools/draw_schemas.py [--into DIRECTORY] 3.9.2=DIRECTORY_OF_JARS 4.3.1=DIRECTORY_OF_JARS

writes one `messages-VERSION.jsonl` for each pair, one message a line, sorted by name: drawing twice gives the same bytes.
A shared struct is written out where it is used, so that a line can be read alone.
"""

import argparse
import json
import re
import zipfile
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().parent.parent / "kafka_wire" / "tables"

# Which folder of which jar holds definitions. The coordinators' own records are left out: no part here reads them.
SOURCES = {
    "kafka-clients": "common/message/",
    "kafka-metadata": "common/metadata/",
    "kafka-raft": "common/message/",
}

# A comment stands alone on its line, or follows the JSON on it; no definition has "//" inside a string of such a line.
COMMENT = re.compile(r'^\s*//.*$|//[^"\n]*$', re.MULTILINE)

MESSAGE_FACTS = {
    "apiKey": "api_key",
    "type": "kind",
    "validVersions": "versions",
    "flexibleVersions": "flexible",
    "latestVersionUnstable": "latest_unstable",
}
FIELD_FACTS = {
    "nullableVersions": "nullable",
    "taggedVersions": "tagged",
    "tag": "tag",
    "flexibleVersions": "flexible",
    "ignorable": "ignorable",
}

Json = dict[str, Any]


def is_struct(kind: str) -> bool:
    """Tell whether a type, or the element of an array type, is a struct: those alone begin with a capital."""
    return kind.removeprefix("[]")[:1].isupper()


def plain_default(kind: str, default: object) -> object:
    """Turn Kafka's default, often a string, into the JSON value it stands for."""
    if default in ("null", None):
        return None
    text = str(default)
    if kind == "bool":
        return text.lower() == "true"
    if kind == "float64":
        return float(text)
    if kind.startswith(("int", "uint")):
        return int(text, 0)
    if kind == "string":
        return text
    raise ValueError(f"No rule for the default {default!r} of type {kind}: add one to plain_default.")


def chosen(source: Json, names: dict[str, str]) -> Json:
    """Return the named facts under their short names; a fact that is absent or false is left out."""
    return {short: source[name] for name, short in names.items() if name in source and source[name] is not False}


def draw_field(field: Json, shared: dict[str, list[Json]]) -> list[Any]:
    """Return `[name, type, versions, facts]` of one field; facts is left out when there are none."""
    kind = field["type"]
    # A field without versions of its own is tagged, and present where its tag is.
    row: list[Any] = [field["name"], kind, field.get("versions", field.get("taggedVersions"))]
    facts = chosen(field, FIELD_FACTS)
    if "tag" in facts:
        facts["tag"] = int(facts["tag"])
    if "default" in field:
        facts["default"] = plain_default(kind, field["default"])
    if is_struct(kind):
        inner = field.get("fields") or shared[kind.removeprefix("[]")]
        facts["fields"] = [draw_field(one, shared) for one in inner]
    return [*row, facts] if facts else row


def draw_message(definition: Json) -> Json:
    """Return the facts of one message."""
    shared = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    drawn: Json = {"name": definition["name"]}
    drawn |= chosen(definition, MESSAGE_FACTS)
    drawn["fields"] = [draw_field(field, shared) for field in definition.get("fields", [])]
    return drawn


def definitions(jars: Path, version: str) -> list[Json]:
    """Read every definition in the jars of one Kafka version; raises when a jar of SOURCES is not there."""
    found: list[Json] = []
    for artifact, folder in SOURCES.items():
        with zipfile.ZipFile(jars / f"{artifact}-{version}.jar") as jar:
            names = (name for name in jar.namelist() if name.startswith(folder) and name.endswith(".json"))
            found.extend(json.loads(COMMENT.sub("", jar.read(name).decode())) for name in names)
    return found


def main() -> None:
    """Write one table for each VERSION=DIRECTORY."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=TABLES, help="where the tables are written")
    parser.add_argument("jars", nargs="+", metavar="VERSION=DIRECTORY")
    arguments = parser.parse_args()
    for pair in arguments.jars:
        version, _, directory = pair.partition("=")
        messages = [draw_message(one) for one in definitions(Path(directory), version)]
        # A message that a version still names and no longer has carries "none" and no fields.
        messages = sorted((one for one in messages if one["versions"] != "none"), key=lambda one: str(one["name"]))
        lines = [json.dumps(one, separators=(",", ":")) for one in messages]
        target = arguments.into / f"messages-{version}.jsonl"
        target.write_text("\n".join(lines) + "\n")
        print(f"{target.name}: {len(lines)} messages")


if __name__ == "__main__":
    main()
