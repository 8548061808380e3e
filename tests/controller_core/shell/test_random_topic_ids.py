"""Random ids and start indexes for new topics."""

from base64 import urlsafe_b64encode
from random import Random
from uuid import UUID

from controller_core.shell.random_topic_ids import PLACE_BITS, draw_place, draw_topic_id, starts_with_dash

DRAWS = 2_000
"""One of 64 ids starts with a dash: without the check about 30 of them would."""


class Scripted(Random):
    """A random source with given results."""

    def __init__(self, *numbers: int) -> None:
        super().__init__()
        self._numbers = list(numbers)

    def getrandbits(self, k: int, /) -> int:  # noqa: ARG002 - the same for any number of bits
        return self._numbers.pop(0)


def test_no_topic_id_starts_with_a_dash() -> None:
    """Uuid.randomUuid: such an id would be taken for an option on a command line."""
    random = Random(1)
    firsts = {urlsafe_b64encode(draw_topic_id(random).bytes)[:1] for _ in range(DRAWS)}

    assert b"-" not in firsts


def test_a_topic_id_with_a_dash_first_is_drawn_again() -> None:
    """Uuid.randomUuid."""
    dash, good = 0xF8 << 120, 1 << 120

    assert draw_topic_id(Scripted(dash, good)) == UUID(int=good, version=4)


def test_a_leading_dash_is_recognised_as_in_base64() -> None:
    """Uuid.toString is base64 for URLs, where the value 62 is a dash."""
    ids = [UUID(int=first << 120 | 5) for first in range(256)]

    assert [urlsafe_b64encode(topic_id.bytes).startswith(b"-") for topic_id in ids] == [
        starts_with_dash(topic_id) for topic_id in ids
    ]


def test_topic_ids_are_version_4() -> None:
    """Uuid: variant 2 (Leach-Salz), version 4."""
    topic_id = draw_topic_id(Random(2))

    assert (topic_id.version, topic_id.variant) == (4, "specified in RFC 4122")


def test_start_indexes_are_never_negative() -> None:
    """Placement takes any number from 0 and reduces it to the number of brokers (AdminUtils)."""
    random = Random(3)

    assert all(0 <= draw_place(random) < 1 << PLACE_BITS for _ in range(DRAWS))
