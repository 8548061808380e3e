"""Examples in docstrings are part of the specification; here they are run."""

import doctest

from kafka_node import versions


def test_every_example_in_a_docstring_holds() -> None:
    """Algorithms carry their worked example as a doctest."""
    result = doctest.testmod(versions)

    assert result.failed == 0
    assert result.attempted > 0
