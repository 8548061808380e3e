"""Which of several Topics owns a Kafka topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.tenants.ownership import winner
from tests.kafka_operator.makers import topic

TIMES = st.sampled_from(["2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z", "2026-01-01T10:00:02Z"])


@pytest.mark.shows("O5")
def test_the_oldest_wins_and_the_uid_breaks_a_tie() -> None:
    """O5; creationTimestamp has whole seconds, so ties are usual."""
    young = topic("young", uid="a", created="2026-01-02T00:00:00Z")
    second = topic("second", uid="c")
    first = topic("first", uid="b")

    assert first is winner([young, second, first])


@given(st.lists(st.tuples(TIMES, st.uuids()), min_size=1, max_size=6, unique_by=lambda item: item[1]), st.randoms())
def test_every_process_finds_the_same_winner(born: list[tuple[str, object]], rng: object) -> None:
    """O3, O5: whatever was seen first."""
    topics = [topic(f"t{index}", uid=str(uid), created=created) for index, (created, uid) in enumerate(born)]
    shuffled = list(topics)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]

    assert winner(topics) is winner(shuffled)
