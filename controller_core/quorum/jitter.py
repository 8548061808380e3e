"""Random numbers as state of the node: SplitMix64, seeded by the shell.

The core draws no random numbers from the system, so a node with an equal state and an equal message does the same again.
"""

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def draw(seed: int, bound: int) -> tuple[int, int]:
    """Return a number from 0 to below `bound`, and the next seed. Not for secrets.

    >>> number, seed = draw(7, 1000)
    >>> draw(7, 1000) == (number, seed), draw(seed, 1000)[0] == number
    (True, False)
    """
    seed = (seed + _STEP) & _MASK
    mixed = seed
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((mixed ^ (mixed >> 31)) % bound if bound else 0), seed
