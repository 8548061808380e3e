"""Brokers as reported by Kafka's Java client: here a stand-in for it, so that every answer can be given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from balance_analytics.jobs.brokers import _asked
from balance_analytics.jobs.problems import LeftOuts

GIB = 2**30


class JavaList(list[Any]):
    """java.util.ArrayList."""

    def add(self, value: Any) -> None:
        """Append."""
        self.append(value)


class JavaMap(dict[Any, Any]):
    """java.util.HashMap."""

    def put(self, key: Any, value: Any) -> None:
        """Set."""
        self[key] = value


class Future:
    """A KafkaFuture that has come to its end."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self, timeout: int, unit: str) -> Any:
        """Return the value, or raise it."""
        assert (timeout, unit) == (30, "seconds")
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


def node(number: int, rack: str | None = None) -> Any:
    """A Node."""
    return SimpleNamespace(id=lambda: number, rack=lambda: rack)


def folder(size: int | None) -> Any:
    """A LogDirDescription."""
    total = SimpleNamespace(isPresent=lambda: size is not None, getAsLong=lambda: size)
    return SimpleNamespace(totalBytes=lambda: total)


def spark_with(roles: Any, controller: Any, disks: dict[int, Any]) -> Any:
    """A session whose JVM has the client: brokers 1 and 2 and the controller, with its `roles`."""
    configs = (
        roles
        if isinstance(roles, Exception)
        else JavaMap({"controller": {"process.roles": SimpleNamespace(value=lambda: roles)}})
    )
    cluster = SimpleNamespace(
        nodes=lambda: Future([node(1, "a"), node(2, "b"), node(990)]), controller=lambda: Future(controller)
    )
    admin = SimpleNamespace(
        describeCluster=lambda: cluster,
        describeConfigs=lambda _: SimpleNamespace(all=lambda: Future(configs)),
        describeLogDirs=lambda asked: SimpleNamespace(
            descriptions=lambda: {broker: Future(disks.get(broker, Py4JError("timed out"))) for broker in asked}
        ),
        close=lambda: None,
    )
    resource = SimpleNamespace(Type=SimpleNamespace(BROKER="BROKER"))
    jvm = SimpleNamespace(
        java=SimpleNamespace(
            util=SimpleNamespace(
                HashMap=JavaMap,
                ArrayList=lambda given=(): JavaList(given),
                concurrent=SimpleNamespace(TimeUnit=SimpleNamespace(SECONDS="seconds")),
            )
        ),
        org=SimpleNamespace(
            apache=SimpleNamespace(
                kafka=SimpleNamespace(
                    clients=SimpleNamespace(admin=SimpleNamespace(AdminClient=SimpleNamespace(create=lambda _: admin))),
                    common=SimpleNamespace(config=SimpleNamespace(ConfigResource=_Resource(resource))),
                )
            )
        ),
    )
    return SimpleNamespace(_jvm=jvm)


class _Resource:
    """ConfigResource: its kinds, and what is made of them, by which answers are found."""

    def __init__(self, of: Any) -> None:
        self.Type = of.Type

    def __call__(self, kind: str, name: str) -> str:
        assert (kind, name) == ("BROKER", "990")
        return "controller"


DISKS = {1: {"/a": folder(GIB), "/b": folder(2 * GIB)}, 2: {"/a": folder(GIB)}, 990: {"/a": folder(GIB)}}


@pytest.mark.parametrize(
    ("roles", "brokers", "left"),
    [
        ("controller", {1, 2}, []),
        ("", {1, 2, 990}, []),
        ("broker,controller", {1, 2, 990}, []),
        (None, {1, 2, 990}, []),
        (
            Py4JError("not allowed"),
            {1, 2},
            ["whether node 990, the controller, is a broker: it did not return its config"],
        ),
    ],
)
def test_a_controller_that_holds_no_data_is_no_broker(roles: Any, brokers: set[int], left: list[str]) -> None:
    """No partition may be moved to it. Unknown roles are reported."""
    left_out = LeftOuts()
    racks, sizes = _asked(spark_with(roles, node(990), DISKS), {}, left_out)

    assert brokers == racks.keys() == sizes.keys()
    assert (racks[1], sizes[1]) == ("a", 3 * GIB)
    assert left == [note.what for note in left_out.all()]


def test_disks_that_are_not_reported_are_left_out() -> None:
    """By an older broker, or one that is away; each by itself."""
    left_out = LeftOuts()
    disks = {1: {"/a": folder(GIB), "/b": folder(None)}, 990: DISKS[990]}
    racks, sizes = _asked(spark_with("", None, disks), {}, left_out)

    assert (set(racks), sizes) == ({1, 2, 990}, {990: GIB})
    assert [(note.what, note.count) for note in left_out.all()] == [
        ("brokers that did not return the size of their disks", 1)
    ]
