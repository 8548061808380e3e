"""Bytes of multi and multi-read. The responses are from ZooKeeper 3.8.4."""

import struct

import pytest

from kafka_zookeeper.errors import ZooKeeperError
from kafka_zookeeper.outcomes import outcome_of
from kafka_zookeeper.protocol import GET_CHILDREN, GET_DATA, MultiRead, MultiWrite, Node, ResultError, full_path
from kafka_zookeeper.writes import Check, Committed, Create, Delete, Refused, RefusedReason, SetData

LAST = "ffffffff 01 ffffffff"
STAT = (
    "0000000000000005 0000000000000009 0000018bcfe56800 0000018bcfe56801 00000003 00000001 00000000 00000000000000aa "
    "00000002 00000001 0000000000000007"
)
"""czxid 5, mzxid 9, ctime, mtime, version 3, cversion 1, aversion 0, owner 0xaa, 2 bytes, 1 child, pzxid 7"""


def packed(*parts: str) -> bytes:
    """Return bytes from hexadecimal text with blanks."""
    return bytes.fromhex("".join(parts))


def test_the_request_of_a_transaction():
    """Each operation after a header (type, not the last, -1); the chroot before each path; null data is -1."""
    request = MultiWrite(
        [Check("/e", 3), Create("/a", None, ephemeral=True), SetData("/b", b"xy", 7), Delete("/c", -1)], "/k"
    )

    expected = packed(
        "0000000d 00 ffffffff 00000004 2f6b2f65 00000003",
        "00000001 00 ffffffff 00000004 2f6b2f61 ffffffff",
        "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000001",
        "00000005 00 ffffffff 00000004 2f6b2f62 00000002 7879 00000007",
        "00000002 00 ffffffff 00000004 2f6b2f63 ffffffff",
        LAST,
    )
    assert request.serialize() == expected
    assert request.size_bytes == len(expected) + 8


@pytest.mark.parametrize(("ephemeral", "sequential", "flags"), [(0, 0, 0), (1, 0, 1), (0, 1, 2), (1, 1, 3)])
def test_the_flags_of_a_create(ephemeral: int, sequential: int, flags: int):
    """CreateMode's numbers."""
    body = MultiWrite([Create("/a", b"", bool(ephemeral), bool(sequential))]).serialize()

    assert flags.to_bytes(4) == body[-13:-9]


def test_the_response_to_a_committed_transaction():
    """A check and a delete have no result, a create its path, a setData its stat."""
    request = MultiWrite([Check("/e", 3), Create("/a", None), SetData("/b", b"xy", 2), Delete("/c", -1)])
    response = packed(
        "0000000d 00 00000000",
        "00000001 00 00000000 00000002 2f61",
        f"00000005 00 00000000 {STAT}",
        "00000002 00 00000000",
        LAST,
    )

    results = request.deserialize(b"head" + response, 4)

    assert results == [None, "/a", 3, None]
    assert outcome_of(results) == Committed((None, "/a", 3, None))


def test_the_response_to_a_rejected_transaction():
    """All results are errors: 0 before the failed operation, -2 after it."""
    request = MultiWrite([Check("/e", 3), Create("/a", None), Delete("/c", -1)])
    response = packed(
        "ffffffff 00 00000000 00000000",
        "ffffffff 00 ffffff92 ffffff92",
        "ffffffff 00 fffffffe fffffffe",
        LAST,
    )

    results = request.deserialize(response, 0)

    assert results == [ResultError(0), ResultError(-110), ResultError(-2)]
    assert outcome_of(results) == Refused(1, RefusedReason.NODE_EXISTS, "NodeExistsError")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (-101, RefusedReason.NO_NODE),
        (-102, RefusedReason.NO_AUTH),
        (-103, RefusedReason.BAD_VERSION),
        (-108, RefusedReason.OTHER),
        (-110, RefusedReason.NODE_EXISTS),
        (-111, RefusedReason.NOT_EMPTY),
        (-125, RefusedReason.OTHER),
    ],
)
def test_reasons_by_code(code: int, reason: RefusedReason):
    """KeeperException.Code."""
    outcome = outcome_of([ResultError(0), ResultError(code), ResultError(-2)])

    assert isinstance(outcome, Refused)
    assert (1, reason) == (outcome.index, outcome.reason)


def test_a_rejection_without_a_failed_operation():
    """Never observed; it must not count as a success."""
    assert outcome_of([ResultError(0), ResultError(-2)]) == Refused(-1, RefusedReason.OTHER, "error codes [0, -2]")


def test_the_request_of_a_multi_read():
    """It cannot set a watch: the byte after each path is 0."""
    expected = packed("00000004 00 ffffffff 00000002 2f61 00", "00000004 00 ffffffff 00000002 2f62 00", LAST)

    assert MultiRead(GET_DATA, ["/a", "/b"]).serialize() == expected


def test_the_response_to_a_multi_read():
    """Each znode has a separate outcome; null data differs from empty data."""
    response = packed(
        f"00000004 00 00000000 00000002 7879 {STAT}",
        "ffffffff 00 ffffff9b ffffff9b",
        f"00000004 00 00000000 ffffffff {STAT}",
        f"00000004 00 00000000 00000000 {STAT}",
        LAST,
    )

    results = MultiRead(GET_DATA, ["/a", "/b", "/c", "/d"]).deserialize(response, 0).results

    assert results == [
        Node(b"xy", 3, 5, 9, 0xAA),
        ResultError(-101),
        Node(None, 3, 5, 9, 0xAA),
        Node(b"", 3, 5, 9, 0xAA),
    ]


def test_the_response_to_a_multi_read_of_children():
    """Lists of names."""
    response = packed("00000008 00 00000000 00000002 00000001 62 00000001 61", "00000008 00 00000000 00000000", LAST)

    read = MultiRead(GET_CHILDREN, ["/a", "/b"]).deserialize(response, 0)

    assert read.results == [["b", "a"], []]
    assert len(response) == read.size_bytes


@pytest.mark.parametrize("response", [packed(LAST), packed("00000009 00 00000000 00000000", LAST)])
def test_a_response_to_another_request_is_an_error(response: bytes):
    """Results that do not match the request must not be returned."""
    with pytest.raises((ZooKeeperError, struct.error)):
        MultiRead(GET_DATA, ["/a"]).deserialize(response, 0)
    with pytest.raises((ZooKeeperError, struct.error)):
        MultiWrite([Delete("/a", 0)]).deserialize(response + packed(LAST), 0)


def test_the_representation_of_a_request_contains_no_data():
    """Some znodes contain credentials, and requests appear in logs."""
    assert "secret" not in repr(MultiWrite([Create("/config/users/u", b"secret")]))


@pytest.mark.parametrize(
    ("chroot", "path", "expected"), [("", "/", "/"), ("", "/a", "/a"), ("/k", "/", "/k"), ("/k", "/a", "/k/a")]
)
def test_the_chroot_is_added_to_a_path(chroot: str, path: str, expected: str):
    """The root is the chroot itself."""
    assert full_path(chroot, path) == expected


def test_a_path_without_a_slash_is_rejected():
    """With a chroot the result would be outside the chroot."""
    with pytest.raises(ValueError, match="must begin with a slash"):
        full_path("/k", "a")
