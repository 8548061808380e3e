"""Citations lead somewhere: cited protocol notes, decisions, benchmark promises and documents are in the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SKIPPED_FOLDERS = {"__pycache__", "node_modules", "results"}
TEXT_SUFFIXES = {".py", ".md", ".txt", ".yaml", ".tpl", ".java", ".properties", ".toml", ".xml", ".go", ".mod", ""}
NOT_WRITTEN_HERE = {"LICENSE", "CHANGELOG.md"}
"""The licence is not the project's text; the changelog names documents of earlier releases."""

FOREIGN_NAMES = re.compile(
    r"\b(?:wire[- ]facts|kraft[- ]facts|broker-facts|peers\.md|design\.md|style\.md|language\.md|house\.md|field\.md|findings\.md"
    r"|gotchas? \d|habit \d|seeds? 00\d|design[:,] |the brief\b)"
    r"|\(design[:,) ]|\"{3}Required: |\(required: ",
    re.IGNORECASE,
)
"""Notes that are not in the repository; a comment cites `docs/protocol-notes.md`, a KIP, or a class of Kafka instead."""

_NOTE_ROW = re.compile(r"^\| Z(\d+) \|", re.MULTILINE)
_NOTES_CITED = re.compile(r"protocol\s+notes,\s+(Z\d+(?:(?:,| and| to)\s+Z\d+)*)", re.IGNORECASE)
"""A citation may be broken across two lines."""

_PROMISE_ROW = re.compile(r"^\| (P\d+) \|", re.MULTILINE)
_PROMISE_CITED = re.compile(r"\(P[1-9]\d*\b|\b[Bb]enchmark P\d+|\brows P\d+|\"P\d+\"")
_DECISION_CITED = re.compile(r"\b(?:ADR |adr/)(\d+)")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_DOCUMENT_CITED = re.compile(r"[A-Za-z0-9_./-]*[A-Za-z0-9_-]\.md\b")


@cache
def texts() -> dict[str, str]:
    """Read the repository's text files, by their paths."""
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(_files(ROOT))}


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if (
            path.name.startswith(".")
            or path.name in SKIPPED_FOLDERS | NOT_WRITTEN_HERE
            or path.name.endswith(".egg-info")
        ):
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.suffix in TEXT_SUFFIXES and path != Path(__file__):
            yield path


def cited(pattern: re.Pattern[str]) -> set[tuple[str, str]]:
    """Find what a pattern cites, with the file that cites it."""
    return {(path, found) for path, text in texts().items() for found in pattern.findall(text)}


def numbers(pattern: re.Pattern[str], document: str) -> list[str]:
    """Read the numbers of a document's rows, in their order."""
    return pattern.findall((ROOT / document).read_text(encoding="utf-8"))


def test_notes_are_numbered_upwards() -> None:
    """Each number has one fact, so that citations stay correct."""
    found = [int(number) for number in numbers(_NOTE_ROW, "docs/protocol-notes.md")]

    assert found == sorted(set(found))


def test_every_cited_note_exists() -> None:
    """Each end of a range, too."""
    there = {f"Z{number}" for number in numbers(_NOTE_ROW, "docs/protocol-notes.md")}
    missing = sorted(
        (path, note) for path, notes in cited(_NOTES_CITED) for note in re.findall(r"Z\d+", notes) if note not in there
    )

    assert missing == []


def test_every_cited_promise_of_a_benchmark_exists() -> None:
    """Rows of `make bench` carry these numbers."""
    there = set(numbers(_PROMISE_ROW, "docs/benchmarks.md"))
    found = {(path, re.findall(r"P\d+", promise)[0]) for path, promise in cited(_PROMISE_CITED)}

    assert sorted((path, promise) for path, promise in found if promise not in there) == []


def test_every_cited_decision_exists() -> None:
    """ADRs are cited by number."""
    there = {int(path.name[:4]) for path in (ROOT / "docs" / "adr").glob("0*.md")}

    assert sorted((path, number) for path, number in cited(_DECISION_CITED) if int(number) not in there) == []


def test_the_index_of_decisions_is_complete() -> None:
    """The index repeats numbers and titles."""
    records = sorted((ROOT / "docs" / "adr").glob("0*.md"))
    titles = [
        re.sub(r"# (\d+)\. (.*)", rf"| \1 | [\2]({path.name}) |", path.read_text().splitlines()[0]) for path in records
    ]

    assert [line for line in (ROOT / "docs" / "adr" / "README.md").read_text().splitlines() if "](0" in line] == titles


@pytest.mark.slow
def test_every_cited_document_exists() -> None:
    """By its path from the root, from `docs/`, or from the folder of the file that cites it."""
    missing = sorted(
        (path, document)
        for path, document in cited(_DOCUMENT_CITED)
        if not any((folder / document).is_file() for folder in (ROOT, ROOT / "docs", (ROOT / path).parent))
    )

    assert missing == []


def test_every_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    """Anchors are made of headings as GitHub makes them: a renamed heading breaks links that no other check finds."""
    broken = []
    for path, text in texts().items():
        for document, anchor in _LINK.findall(text) if path.endswith(".md") else []:
            target = (ROOT / path).parent / document if document else ROOT / path
            if not target.exists() or (anchor and anchor not in _anchors(target.read_text(encoding="utf-8"))):
                broken.append((path, document, anchor))

    assert broken == []


def _anchors(page: str) -> set[str]:
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(page)}


@pytest.mark.parametrize(
    "path", ["README.md", "Makefile", "controller_core/rules/election.py", "docs/protocol-notes.md"]
)
def test_files_of_all_kinds_are_read(path: str) -> None:
    """A filter that is too strict would hide citations."""
    assert path in texts()


@pytest.mark.slow
def test_no_file_cites_notes_from_outside_the_repository() -> None:
    """Readers have the repository and Kafka's own documents."""
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if FOREIGN_NAMES.search(line)
    ]

    assert found == []
