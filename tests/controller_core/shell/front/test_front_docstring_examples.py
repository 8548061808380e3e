"""Examples in the docstrings of kafka_node.versions."""

import doctest

from kafka_node import versions


def test_docstring_examples_are_correct() -> None:
    """Doctests of the module."""
    result = doctest.testmod(versions)

    assert result.failed == 0
    assert result.attempted > 0
