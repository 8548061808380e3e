"""Numbers of java.util.Random for a seed: placement in KRaft mode is defined by them, and a decision gets its seed with the event.

Source: the documentation of java.util.Random (a linear congruential generator of 48 bits) and of Collections.shuffle.
"""

from typing import TypeVar

Item = TypeVar("Item")

_MULTIPLIER, _INCREMENT, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


class JavaRandom:
    """One sequence of numbers."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def below(self, bound: int) -> int:
        """Return the next number from 0 on, below a positive bound (nextInt).

        >>> random = JavaRandom(42)
        >>> [random.below(10) for _ in range(5)]
        [0, 3, 8, 4, 0]
        """
        if bound & (bound - 1) == 0:
            return (bound * self._next()) >> 31
        while True:
            bits = self._next()
            # Numbers from an incomplete last round are drawn again: each remainder is equally likely.
            if bits - bits % bound + bound - 1 < 1 << 31:
                return bits % bound

    def shuffle(self, items: list[Item]) -> None:
        """Reorder a list in place."""
        for size in range(len(items), 1, -1):
            other = self.below(size)
            items[size - 1], items[other] = items[other], items[size - 1]

    def _next(self) -> int:
        """Return the next 31 bits."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> 17
