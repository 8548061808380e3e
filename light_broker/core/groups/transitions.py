"""Transitions between the states of a group; no others exist.

| from | to | reason |
| --- | --- | --- |
| Empty | PreparingRebalance | a member joins |
| PreparingRebalance | CompletingRebalance | all members have joined, or the rebalance timeout is over |
| PreparingRebalance | Empty | no member is left |
| CompletingRebalance | Stable | the assignments of the leader are stored |
| CompletingRebalance | PreparingRebalance | a member joins, leaves, changes its protocols or is lost; assignments cannot be stored |
| Stable | PreparingRebalance | a member joins, leaves, changes its protocols or is lost; the leader joins again |
| any | Dead | the group is deleted or has expired, or the partition has another leader |

Source: Kafka's ClassicGroupState. A deletion that cannot be stored puts the group back as it was.
"""

from collections.abc import Mapping

from light_broker.core.groups.states import CompletingRebalance, Dead, Empty, PreparingRebalance, Stable, State

TRANSITIONS: Mapping[type[State], frozenset[type[State]]] = {
    Empty: frozenset({PreparingRebalance, Dead}),
    PreparingRebalance: frozenset({CompletingRebalance, Empty, Dead}),
    CompletingRebalance: frozenset({Stable, PreparingRebalance, Dead}),
    Stable: frozenset({PreparingRebalance, Dead}),
    Dead: frozenset({Dead}),
}
"""The table of the docstring."""

REBALANCES_FROM = frozenset(before for before, after in TRANSITIONS.items() if PreparingRebalance in after)
"""States in which a rebalance can begin."""


def check(before: State, after: State) -> None:
    """Assert that a transition is in the table."""
    assert type(after) in TRANSITIONS[type(before)], (type(before).__name__, type(after).__name__)
