"""Extraction of Kafka's message schemas from its jars into `kafka_wire/tables/`.

Kafka's jars contain the definitions from which its codec is generated. This script keeps the facts that affect the bytes: names,
types, versions, nullability, tags, defaults, ignorability, API keys. It drops comments and descriptions, documentation
(entity types, listeners), and facts for Java's collections (map keys).

    python tools/extract_schemas.py [--into DIRECTORY] 3.9.2=DIRECTORY_OF_JARS 4.3.1=DIRECTORY_OF_JARS

It writes one `messages-VERSION.jsonl` for each pair, one message per line, sorted by name. The output is deterministic.
A shared struct is repeated at each use, so that every line is complete.
"""

import argparse
import json
import re
import zipfile
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().parent.parent / "kafka_wire" / "tables"

SOURCES = {
    "kafka-clients": "common/message/",
    "kafka-metadata": "common/metadata/",
    "kafka-raft": "common/message/",
    "kafka-group-coordinator": "common/message/",
}
"""Folders of the definitions by jar."""

GROUP_RECORDS = {"OffsetCommitKey", "OffsetCommitValue", "GroupMetadataKey", "GroupMetadataValue"}
"""Records of `__consumer_offsets` that are read and written; those of the other types of groups are not used."""

COMMENT = re.compile(r'^\s*//.*$|//[^"\n]*$', re.MULTILINE)
"""A comment is on a separate line, or follows the JSON on its line; no definition has "//" inside a string of such a line."""

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
    """Return whether a type, or the element of an array type, is a struct: only structs start with a capital letter."""
    return kind.removeprefix("[]")[:1].isupper()


def plain_default(kind: str, default: object) -> object:
    """Convert Kafka's default, often a string, to the JSON value that it represents."""
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
    """Return the named facts by their short names, without absent and false ones."""
    return {short: source[name] for name, short in names.items() if name in source and source[name] is not False}


def extract_field(field: Json, shared: dict[str, list[Json]]) -> list[Any]:
    """Return `[name, type, versions, facts]` of one field, without facts if there are none."""
    kind = field["type"]
    # A field without versions is tagged, and has the versions of its tag.
    row: list[Any] = [field["name"], kind, field.get("versions", field.get("taggedVersions"))]
    facts = chosen(field, FIELD_FACTS)
    if "tag" in facts:
        facts["tag"] = int(facts["tag"])
    if "default" in field:
        facts["default"] = plain_default(kind, field["default"])
    if is_struct(kind):
        inner = field.get("fields") or shared[kind.removeprefix("[]")]
        facts["fields"] = [extract_field(field, shared) for field in inner]
    return [*row, facts] if facts else row


def extract_message(definition: Json) -> Json:
    """Return the facts of one message."""
    shared = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    message: Json = {"name": definition["name"]}
    message |= chosen(definition, MESSAGE_FACTS)
    message["fields"] = [extract_field(field, shared) for field in definition.get("fields", [])]
    return message


def definitions(jars: Path, version: str) -> list[Json]:
    """Read all definitions in the jars of one Kafka version; raises if a jar of SOURCES is missing."""
    found: list[Json] = []
    for artifact, folder in SOURCES.items():
        with zipfile.ZipFile(jars / f"{artifact}-{version}.jar") as jar:
            names = (name for name in jar.namelist() if name.startswith(folder) and name.endswith(".json"))
            read = (json.loads(COMMENT.sub("", jar.read(name).decode())) for name in names)
            found.extend(
                message for message in read if artifact != "kafka-group-coordinator" or is_used_record(message)
            )
    return found


def is_used_record(definition: Json) -> bool:
    """Return whether a message of the group coordinator is used. Before Kafka 4 its keys had the record's type as their version."""
    return definition["name"] in GROUP_RECORDS and definition["type"] in {"coordinator-key", "coordinator-value"}


def main() -> None:
    """Write one table for each VERSION=DIRECTORY."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=TABLES, help="directory of the tables")
    parser.add_argument("jars", nargs="+", metavar="VERSION=DIRECTORY")
    arguments = parser.parse_args()
    for pair in arguments.jars:
        version, _, directory = pair.partition("=")
        messages = [extract_message(definition) for definition in definitions(Path(directory), version)]
        # A message that a version has removed may still be listed, with "none" as versions and no fields.
        messages = sorted(
            (message for message in messages if message["versions"] != "none"), key=lambda message: str(message["name"])
        )
        lines = [json.dumps(message, separators=(",", ":")) for message in messages]
        target = arguments.into / f"messages-{version}.jsonl"
        target.write_text("\n".join(lines) + "\n")
        print(f"{target.name}: {len(lines)} messages")


if __name__ == "__main__":
    main()
