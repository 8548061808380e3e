"""The reconnect delay grows up to a cap, and has a jitter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire.net.backoff import KAFKA_BACKOFF, Backoff


def test_the_delay_doubles_up_to_the_cap() -> None:
    """Kafka: reconnect.backoff.ms to reconnect.backoff.max.ms."""
    backoff = Backoff(initial_ms=50, cap_ms=300, jitter=0)

    assert [backoff.delay_ms(failures, 0.5) for failures in range(6)] == [0, 50, 100, 200, 300, 300]


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_the_delay_deviates_by_at_most_the_jitter(failures: int, random: float) -> None:
    """Kafka's clients use a jitter of a fifth."""
    exact = Backoff(jitter=0).delay_ms(failures, random)

    assert 0.8 * exact <= KAFKA_BACKOFF.delay_ms(failures, random) <= 1.2 * exact


@pytest.mark.parametrize("wrong", [{"initial_ms": 0}, {"initial_ms": 9, "cap_ms": 8}, {"jitter": 1.0}])
def test_invalid_backoff_settings_are_rejected(wrong: dict[str, float]) -> None:
    """Settings are checked when they are created."""
    with pytest.raises(ValueError, match="needs"):
        Backoff(**wrong)
