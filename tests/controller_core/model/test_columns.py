"""Lists of broker ids as padded arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.columns import MANY_LISTS, pad


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=8), st.integers(0, 6))
def test_many_lists_are_padded_like_few(lists: list[list[int]], width: int) -> None:
    """From `MANY_LISTS` on they are padded without a list for each row."""
    times = MANY_LISTS // len(lists) + 1

    assert np.array_equal(pad(lists * times, width), np.tile(pad(lists, width), (times, 1)))
