"""Java's properties format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.format.java_properties import parse_properties, write_property

TEXT = st.text(st.characters(codec="latin-1"), max_size=12)


def test_the_separator_is_the_first_unescaped_sign_or_blank() -> None:
    """As in Java's Properties.load."""
    data = b"a=1\nb : 2\nc 3\nd\\=e=4=5\nf"

    assert parse_properties(data) == {"a": "1", "b": "2", "c": "3", "d=e": "4=5", "f": ""}


def test_escapes_and_blanks_are_read_as_in_java() -> None:
    """Blanks before a name are left out, those behind a value stay."""
    data = b"  a : 1 \nc\\ d e\\u0041\npath=a=b:c\\\\\n"

    assert parse_properties(data) == {"a": "1 ", "c d": "eA", "path": "a=b:c\\"}


def test_comments_and_empty_lines_are_skipped_and_lines_continue_after_a_backslash() -> None:
    """Two backslashes are one character and continue nothing."""
    data = b"# no=1\r\n  ! no=2\n\na = 1,\\\n   2,\\\r\n   3\nb=x\\\\\nc=4"

    assert parse_properties(data) == {"a": "1,2,3", "b": "x\\", "c": "4"}


def test_a_file_may_end_in_a_line_that_continues() -> None:
    """Java takes what is there."""
    assert parse_properties(b"a=1,\\") == {"a": "1,"}


def test_the_last_of_equal_names_counts() -> None:
    """As in Java."""
    assert parse_properties(b"a=1\na=2") == {"a": "2"}


def test_a_malformed_unicode_escape_is_refused() -> None:
    """In Java's words."""
    with pytest.raises(ValueError, match="Malformed"):
        parse_properties(b"a=\\u12")


@given(st.dictionaries(TEXT, TEXT))
def test_what_is_written_is_read(values: dict[str, str]) -> None:
    """For all characters of Latin-1, in which Kafka reads these files."""
    data = "".join(write_property(name, value) for name, value in values.items())

    assert parse_properties(data.encode("latin-1")) == values
