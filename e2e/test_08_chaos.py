"""Two rounds of random faults; `make chaos` runs more."""

import random

import pytest

from e2e.chaos import Chaos
from e2e.clients import KafkaClients
from e2e.faults import Faults
from e2e.release import Release


@pytest.fixture(scope="module")
def chaos(release: Release, clients: KafkaClients, faults: Faults) -> Chaos:
    """Chaos with a seed of its own, which is printed."""
    made = Chaos(release, clients, faults, seed=random.SystemRandom().randrange(1 << 31))
    made.prepare()
    return made


@pytest.mark.parametrize("number", [1, 2])
def test_a_round_of_chaos_loses_nothing(chaos: Chaos, number: int) -> None:
    """Jepsen's list: no lost write, no duplicate, no inconsistent offset, no skipped poll."""
    chaos.round(number)
