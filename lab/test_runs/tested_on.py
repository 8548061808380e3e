"""Real parts that a test runs on, found in its code: Kafka 3.9, Kafka 4.3, a Kubernetes API server, a cluster on kind.

A test runs on a part if the test, one of its fixtures, or a function that one of these uses starts the part. The code is read, not run:
fixtures are found as pytest finds them (in the module, then in each `conftest.py` above it), names through imports within tests/ and e2e/.
tests/test_shown.py compares the parts with the marks `kafka` and `kubernetes` of the tests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lab.downloads.jars import KAFKA_VERSION, NEWEST_KAFKA_VERSION

ROOT = Path(__file__).resolve().parents[2]

FOLDERS = ("tests", "e2e")
"""Folders whose modules are followed; functions of all others are parts, or start none."""

KAFKA_3, KAFKA_4 = (f"Kafka {version.rpartition('.')[0]}" for version in (KAFKA_VERSION, NEWEST_KAFKA_VERSION))

STARTS: Mapping[str, str] = {
    "lab.peers.kubernetes.kubernetes_api": "API server",
    "lab.peers.zookeeper.zookeeper_server": "ZooKeeper",
    "lab.peers.cluster.kafka_cluster": KAFKA_3,
    "lab.peers.kraft.kraft_cluster": KAFKA_4,
    "lab.peers.kraft.KraftNode": KAFKA_4,
    "lab.peers.quorum.quorum": KAFKA_4,
    "lab.peers.mixed_cluster.mixed_cluster": KAFKA_4,
    "lab.downloads.helm.helm": "helm",
    "balance_analytics.jobs.session.session": "Spark",
    "e2e.kube.Kube": "kind",
    "e2e.conftest.release": KAFKA_3,
    "e2e.stock_kafka.StockKafka": KAFKA_4,
}
"""Function, class or fixture -> the part that it starts."""

FAKE = "fake"
"""A test without any real part: functions of values, or fakes of Kafka and of the Kubernetes API."""

_MARK = re.compile(r"pytest\.mark\.(\w+)")

PARTS = (FAKE, "helm", "API server", "ZooKeeper", KAFKA_3, KAFKA_4, "Spark", "kind")
"""All parts, in the order of lists."""


@dataclass(frozen=True, slots=True)
class _Module:
    """The definitions of a module by their names, and its imports: local name -> full name."""

    name: str
    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)


@cache
def parts_of(test: str) -> list[str]:
    """Return the parts of a test `path::name`, in the order of PARTS; `[FAKE]` if there are none."""
    path, _, name = test.partition("::")
    found = set(_Reader(path.removesuffix(".py").replace("/", ".")).parts(name))
    return [part for part in PARTS if part in found] or [FAKE]


@cache
def marks_of(test: str) -> set[str]:
    """Return the names of the marks of a test `path::name`, of its module's too, as the source has them."""
    path, _, name = test.partition("::")
    module = path.removesuffix(".py").replace("/", ".")
    own, found = _module(module).definitions.get("pytestmark"), _find(module, name)
    sources = [] if own is None else [own]
    if found is not None:
        node = _module(found[0]).definitions[found[1]]
        sources += getattr(node, "decorator_list", [])
    return {name for source in sources for name in _MARK.findall(ast.unparse(source))}


class _Reader:
    """One traversal of what a test of a module uses."""

    def __init__(self, collected: str) -> None:
        """Begin at `collected`, the module that pytest collects the test in; it may import the test."""
        self._levels = [collected, *_conftests(collected)]
        self._seen: set[tuple[str, str]] = set()

    def parts(self, test: str) -> Iterator[str]:
        """Yield the parts of a test, perhaps more than once."""
        for level in self._levels:
            for name, node in _module(level).definitions.items():
                if _is_fixture(node) and "autouse=True" in ast.unparse(node):
                    yield from self._fixture(name)
        marks = _module(self._levels[0]).definitions.get("pytestmark")
        if marks is not None:
            yield from self._used_fixtures(marks)
        yield from self._definition(self._levels[0], test)

    def _fixture(self, name: str, above: int = 0) -> Iterator[str]:
        """Yield the parts of a fixture, found in the module or in the nearest conftest, from the level `above` on."""
        for index, level in enumerate(self._levels[above:], start=above):
            found = _find(level, name)
            if found is not None and _is_fixture(_module(found[0]).definitions[found[1]]):
                yield from self._definition(*found, above=index + 1)
                return

    def _definition(self, module: str, name: str, above: int = 0) -> Iterator[str]:
        found = _find(module, name)
        if found is None or found in self._seen:
            return
        self._seen.add(found)
        started = STARTS.get(".".join(found))
        if started is not None:
            yield started
        node = _module(found[0]).definitions[found[1]]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (_is_fixture(node) or name.startswith("test_")):
            for argument in (*node.args.args, *node.args.kwonlyargs):
                yield from self._fixture(argument.arg, above if argument.arg == name else 0)
            yield from self._used_fixtures(node)
        for full in _used(node, _module(found[0])):
            if full in STARTS:
                yield STARTS[full]
            yield from self._definition(*_split(full))

    def _used_fixtures(self, node: ast.stmt) -> Iterator[str]:
        """Yield the parts of fixtures that are named by strings: in `usefixtures`, or for `getfixturevalue`."""
        text = ast.unparse(node)
        if "usefixtures" in text or "getfixturevalue" in text:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield from self._fixture(inner.value)


@cache
def _module(name: str) -> _Module:
    """Return a parsed module of tests/ or e2e/; an empty one if there is no such file."""
    path = ROOT / f"{name.replace('.', '/')}.py"
    module = _Module(name)
    if name.partition(".")[0] not in FOLDERS or not path.is_file():
        return module
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                module.definitions[node.name] = node
            case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)):
                module.definitions[target] = node
            case ast.ImportFrom(module=str(source)):
                module.imports.update({alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names})
            case ast.Import():
                module.imports.update({alias.asname or alias.name: alias.name for alias in node.names})
            case _:
                pass
    return module


def _find(module: str, name: str) -> tuple[str, str] | None:
    """Return the module that defines a name and its name there, also where `module` imports it."""
    parsed = _module(module)
    if name in parsed.definitions:
        return module, name
    if name in parsed.imports:
        return _find(*_split(parsed.imports[name]))
    return None


def _split(full: str) -> tuple[str, str]:
    """Return a module of tests/ or e2e/ and the name in it that a full name refers to, without attributes of that."""
    module, rest = full, ""
    while module.partition(".")[0] in FOLDERS and not (ROOT / f"{module.replace('.', '/')}.py").is_file():
        module, _, last = module.rpartition(".")
        rest = f"{last}.{rest}"
    return module, rest.partition(".")[0]


def _conftests(module: str) -> Iterator[str]:
    """Yield the conftest modules that apply to a module, the nearest first."""
    while (module := module.rpartition(".")[0]) != "":
        if (ROOT / module.replace(".", "/") / "conftest.py").is_file():
            yield f"{module}.conftest"


def _is_fixture(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        "fixture" in ast.unparse(decorator) for decorator in node.decorator_list
    )


def _used(node: ast.AST, module: _Module, local: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the full names of what the code uses, without annotations, and without arguments and `local` variables of a function."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        local |= set(_local_names(node))
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns"}:
            continue
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.ImportFrom):
                yield from (f"{inner.module}.{alias.name}" for alias in inner.names)
            if isinstance(inner, ast.Name | ast.Attribute):
                first, *rest = ast.unparse(inner).split(".")
                if first in module.imports and first not in local:
                    yield ".".join([module.imports[first], *rest])
                elif first in module.definitions and first not in local:
                    yield f"{module.name}.{first}"
            if isinstance(inner, ast.AST):
                yield from _used(inner, module, local)


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    for inner in ast.walk(function):
        if isinstance(inner, ast.arg):
            yield inner.arg
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
