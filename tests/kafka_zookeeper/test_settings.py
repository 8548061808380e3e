"""Connect strings and timeouts."""

import pytest

from kafka_zookeeper.settings import Address, ZooKeeperSettings, parse_connect


@pytest.mark.parametrize(
    ("connect", "addresses", "chroot"),
    [
        ("zk", [("zk", 2181)], ""),
        ("zk:2182", [("zk", 2182)], ""),
        ("a:1,b:2,c", [("a", 1), ("b", 2), ("c", 2181)], ""),
        ("a:1, b:2/kafka", [("a", 1), ("b", 2)], "/kafka"),
        ("a:1/kafka/east/", [("a", 1)], "/kafka/east"),
        ("a:1/", [("a", 1)], ""),
        ("[::1]:2182/k", [("::1", 2182)], "/k"),
    ],
)
def test_a_connect_string_is_parsed_as_in_kafka(connect: str, addresses: list[tuple[str, int]], chroot: str):
    """As zookeeper.connect: one chroot, after the last host."""
    assert parse_connect(connect) == (tuple(Address(*address) for address in addresses), chroot)


@pytest.mark.parametrize(
    "connect", ["", ",", "a:1,", "a:x", "a:0", "a:70000", "u@a:1", "a?x", "a:1//k", "a:1/k/../j", "a:1/."]
)
def test_an_invalid_connect_string_is_rejected(connect: str):
    """Before a connection is opened."""
    with pytest.raises(ValueError, match="connect string"):
        ZooKeeperSettings(connect)


@pytest.mark.parametrize(("name", "value"), [("session_timeout_ms", 999), ("connect_timeout_ms", 0)])
def test_invalid_timeouts_are_rejected(name: str, value: int):
    """The message names the setting."""
    with pytest.raises(ValueError, match=name):
        ZooKeeperSettings("a", **{name: value})


def test_without_chroot_keeps_the_other_settings():
    """For creating the chroot itself."""
    assert ZooKeeperSettings("a:1,b:2/k/l", 5_000).without_chroot() == ZooKeeperSettings("a:1,b:2", 5_000)
