"""Examples in pages of docs/: complete resources, and the shell commands of a page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.kafka_operator.makers import Raw

DOCS = Path(__file__).resolve().parents[2] / "docs"

TASKS = DOCS / "tasks"

_FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

_INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)

_FILE = re.compile(r"# (\S+\.yaml)\n")


def resources(page: str) -> list[Raw]:
    """Return the complete resources of a page: those of fenced blocks of YAML, and of indented blocks that begin with `apiVersion`."""
    blocks = [text for language, text in _fenced(page) if language == "yaml"]
    blocks += [text for block in _INDENTED.findall(page) if (text := textwrap.dedent(block)).startswith("apiVersion:")]
    documents = [document for block in blocks for document in yaml.safe_load_all(block)]
    return [
        document for document in documents if isinstance(document, dict) and {"apiVersion", "kind"} <= document.keys()
    ]


def script(page: str, folder: Path) -> str:
    """Return the shell commands of a page, in order; write its YAML to the files that the first lines of the blocks name."""
    commands = ["set -o errexit -o nounset -o pipefail"]
    for language, text in _fenced(page):
        named = _FILE.match(text)
        if language == "yaml" and named is not None:
            (folder / named[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            commands.append(text)
    return "\n".join(commands)


def _fenced(page: str) -> Iterator[tuple[str, str]]:
    for found in _FENCED.finditer(page):
        yield found["language"], found["text"]
