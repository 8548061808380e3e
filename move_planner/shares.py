"""Average number of replicas of a partition by broker, where racks have priority.

Without racks every broker's share of a partition is replication factor / brokers. Racks change that where they differ in size:
with at least as many racks as replicas, no rack may hold more than one replica of a partition; with fewer racks, none may hold
less than one. A rack whose even share would violate this gets exactly one, and the others share the rest evenly.

Worked example: three racks of 4, 4 and 1 brokers, replication factor 3. Every partition needs a replica in each rack, so the
single broker holds one replica of every partition.

>>> [str(share) for share in shares_by_rack([4, 4, 1], 3)]
['1/4', '1/4', '1']

Shares are exact fractions.
"""

from collections.abc import Sequence
from fractions import Fraction


def shares_by_rack(sizes: Sequence[int], replication_factor: int) -> list[Fraction]:
    """Return the share of each broker in each rack, by the sizes of the racks; shares times sizes sum to the factor.

    A replication factor above the number of brokers counts as that number: every broker holds every partition.

    >>> [str(share) for share in shares_by_rack([2, 2, 4], 2)]
    ['1/4', '1/4', '1/4']
    """
    factor = min(replication_factor, sum(sizes))
    exactly_one: set[int] = set()
    while len(exactly_one) < len(sizes):
        others = [rack for rack in range(len(sizes)) if rack not in exactly_one]
        share = Fraction(factor - len(exactly_one), sum(sizes[rack] for rack in others))
        capped = len(sizes) >= factor
        beyond = {rack for rack in others if (share * sizes[rack] > 1 if capped else share * sizes[rack] < 1)}
        if not beyond:
            return [Fraction(1, size) if rack in exactly_one else share for rack, size in enumerate(sizes)]
        exactly_one |= beyond
    return [Fraction(1, size) for size in sizes]
