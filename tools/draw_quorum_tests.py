"""Drawing of `docs/quorum-tests.md` and `docs/metadata-tests.md`: what tests of Kafka cover, and which tests of Steward show the same.

    python tools/draw_quorum_tests.py kafka-raft-VERSION-test.jar
    python tools/draw_quorum_tests.py kafka-metadata-VERSION-test.jar

A jar comes from Maven Central: `mvn dependency:copy -Dartifact=org.apache.kafka:kafka-raft:VERSION:jar:test`. Classes and cases are
those of the jar; the last column is written by people, and kept. A newer jar adds rows that are open. The output is
deterministic.
"""

import argparse
import io
import re
import struct
import zipfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"

PAGES = {"raft": DOCS / "quorum-tests.md", "metadata": DOCS / "metadata-tests.md"}
"""The page of each module of Kafka."""

OPEN = "open"
"""Content of a cell that is not filled in, and the beginning of a part of a cell that names cases without a test."""

SIMULATION = "RaftEventSimulationTest"
"""Its properties have rows of their own."""

CASE_ANNOTATIONS = {
    "Lorg/junit/jupiter/api/Test;",
    "Lorg/junit/jupiter/api/RepeatedTest;",
    "Lorg/junit/jupiter/params/ParameterizedTest;",
    "Lnet/jqwik/api/Property;",
    "Lorg/apache/kafka/common/test/api/ClusterTest;",
    "Lorg/apache/kafka/common/test/api/ClusterTests;",
    "Lorg/apache/kafka/common/test/api/ClusterTemplate;",
}
"""A method with one of these is a case; a parameterized one counts once."""

HEADER = """# Tests of Kafka's {module} module, and what shows the same here

Drawn from `kafka-{module}-{version}-test.jar` by `tools/draw_quorum_tests.py`; the last column is written by hand and kept. A case with
parameters counts once. A row groups the cases of its class by what they show. {legend}

{classes} classes with {cases} cases; {open}.
"""

LEGENDS = {
    "raft": """`open` means that the row is not worked on yet; `not yet`
in a row, that the cases before it are not shown or do not hold here.""",
    "metadata": """Tests under
`judged`, and `test_java_…`, compare with Kafka's own classes. After `open` are the cases without a test here, or all of the class, and why.""",
}

_MAGIC = 0xCAFEBABE
_UTF8, _LONG, _DOUBLE = 1, 5, 6
_CONSTANT_BYTES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
"""Sizes of entries of a class file's constant pool by tag, without the tag and without texts."""


class ClassFile(io.BytesIO):
    """A compiled Java class, read from its beginning: only what names its methods and their annotations."""

    def cases(self) -> list[str]:
        """Return the names of the methods that are test cases."""
        if self._number(4) != _MAGIC:
            raise ValueError("this is no class file")
        self._skip(4)
        texts = self._texts()
        self._skip(6)
        self._skip(2 * self._number(2))
        for _ in range(self._number(2)):
            self._member(texts)
        members = [self._member(texts) for _ in range(self._number(2))]
        return [name for name, annotations in members if annotations & CASE_ANNOTATIONS]

    def _texts(self) -> dict[int, str]:
        """Read the constant pool and return its texts by index."""
        found: dict[int, str] = {}
        index, count = 1, self._number(2)
        while index < count:
            tag = self._number(1)
            if tag == _UTF8:
                found[index] = self.read(self._number(2)).decode("utf-8", "replace")
            else:
                self._skip(_CONSTANT_BYTES[tag])
            index += 2 if tag in {_LONG, _DOUBLE} else 1
        return found

    def _member(self, texts: dict[int, str]) -> tuple[str, set[str]]:
        """Read a field or method and return its name and the types of its annotations."""
        self._skip(2)
        name = texts[self._number(2)]
        self._skip(2)
        annotations: set[str] = set()
        for _ in range(self._number(2)):
            attribute, length = texts[self._number(2)], self._number(4)
            if attribute == "RuntimeVisibleAnnotations":
                annotations |= {self._annotation(texts) for _ in range(self._number(2))}
            else:
                self._skip(length)
        return name, annotations

    def _annotation(self, texts: dict[int, str]) -> str:
        kind = texts[self._number(2)]
        for _ in range(self._number(2)):
            self._skip(2)
            self._element(texts)
        return kind

    def _element(self, texts: dict[int, str]) -> None:
        tag = chr(self._number(1))
        if tag == "@":
            self._annotation(texts)
        elif tag == "[":
            for _ in range(self._number(2)):
                self._element(texts)
        else:
            self._skip(4 if tag == "e" else 2)

    def _number(self, size: int) -> int:
        (number,) = struct.unpack(f">{'xBHxI'[size]}", self.read(size))
        return int(number)

    def _skip(self, size: int) -> None:
        self.seek(size, io.SEEK_CUR)


def cases_by_class(jar: Path) -> dict[str, list[str]]:
    """Return the names of the cases by class, both sorted; a class within another one counts as that one."""
    found: dict[str, set[str]] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".class"):
                outer = Path(name).stem.partition("$")[0]
                found.setdefault(outer, set()).update(ClassFile(archive.read(name)).cases())
    return {name: sorted(cases) for name, cases in sorted(found.items()) if cases}


def kept_cells(page: str) -> dict[str, str]:
    """Return the last cell of each row by the first one."""
    rows = re.findall(r"^\| `(\w+)` \|(?: \d+ \|)? ([^|]*) \|$", page, re.MULTILINE)
    return dict(rows)


def open_cases(cell: str, cases: list[str]) -> list[str]:
    """Return the cases of a class that its cell calls open: those that a part names, or all of them.

    >>> open_cases("`testA`: `tests/a.py`; open: `testB`, `testC`: no such metric", ["testA", "testB", "testC"])
    ['testB', 'testC']
    >>> open_cases("open: no such metric", ["testA", "testB"])
    ['testA', 'testB']
    """
    found: set[str] = set()
    for part in cell.split("; "):
        if part.startswith(OPEN):
            found |= set(re.findall(r"`(\w+)`", part)).intersection(cases) or set(cases)
    return [case for case in cases if case in found]


def unknown_cases(cases: dict[str, list[str]], kept: dict[str, str]) -> list[str]:
    """Return the names of cases in cells that their classes do not have: they were renamed, or are misspelled."""
    return [
        f"{name}: {word}"
        for name, of_class in cases.items()
        for word in re.findall(r"`(test[A-Z]\w*)`", kept.get(name, ""))
        if word not in of_class
    ]


def render(cases: dict[str, list[str]], kept: dict[str, str], version: str, module: str = "raft") -> str:
    """Return the page."""
    classes = [(name, of_class) for name, of_class in cases.items() if name != SIMULATION]
    simulated = cases.get(SIMULATION, [])
    names = [*simulated, *(name for name, _ in classes)]
    rows = sum(kept.get(name, OPEN) == OPEN for name in names)
    left = sum(len(open_cases(kept.get(name, OPEN), of_class)) for name, of_class in classes)
    header = HEADER.format(
        module=module,
        version=version,
        legend=LEGENDS[module],
        classes=len(cases),
        cases=sum(map(len, cases.values())),
        open=f"{rows} rows are open" if module == "raft" else f"{left} cases are open",
    )
    properties = [
        f"## Properties of {SIMULATION}",
        "",
        "| property | shown by |",
        "| --- | --- |",
        *(f"| `{name}` | {kept.get(name, OPEN)} |" for name in simulated),
        "",
        "## Other classes",
        "",
    ]
    return "\n".join(
        [
            header,
            *(properties if simulated else []),
            "| class | cases | shown by |",
            "| --- | --- | --- |",
            *(f"| `{name}` | {len(of_class)} | {kept.get(name, OPEN)} |" for name, of_class in classes),
            "",
        ]
    )


def main() -> None:
    """Draw the page again, or list the cases of one class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jar", type=Path, metavar="kafka-MODULE-VERSION-test.jar")
    parser.add_argument("--cases", metavar="CLASS", help="list the cases of this class instead")
    arguments = parser.parse_args()
    named = re.fullmatch(r"kafka-(\w+)-(.+)-test\.jar", arguments.jar.name)
    if named is None or named[1] not in PAGES:
        parser.error(f"{arguments.jar.name} is the jar of no module with a page: {', '.join(PAGES)}.")
    module, version = named.groups()
    cases = cases_by_class(arguments.jar)
    if arguments.cases:
        print("\n".join(cases[arguments.cases]))
        return
    page = PAGES[module]
    kept = kept_cells(page.read_text(encoding="utf-8")) if page.is_file() else {}
    if unknown := unknown_cases(cases, kept):
        parser.error(f"{page} names cases that the jar does not have: {', '.join(unknown)}.")
    page.write_text(render(cases, kept, version, module), encoding="utf-8")


if __name__ == "__main__":
    main()
