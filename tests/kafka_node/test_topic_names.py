"""Rules for topic names (Kafka's org.apache.kafka.common.internals.Topic)."""

import pytest

from kafka_node.topic_names import MAX_NAME_LENGTH, collisions, is_internal, topic_name_error
from kafka_wire import ErrorCode, Failure


@pytest.mark.parametrize("name", ["t", "Topic-1", "a.b", "a_b", "...", "-", "a" * MAX_NAME_LENGTH])
def test_a_valid_name_is_accepted(name: str) -> None:
    """ASCII letters, digits, dot, underscore and hyphen; at most 249 characters."""
    assert topic_name_error(name) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Topic name is invalid: the empty string is not allowed"),
        (".", "Topic name is invalid: '.' is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        ("x" * 250, f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249"),
        (
            "a\n",
            "Topic name is invalid: 'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            "\u0660",
            "Topic name is invalid: '\u0660' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
    ],
)
def test_an_invalid_name_is_refused_with_kafkas_message(name: str, message: str) -> None:
    """Error code INVALID_TOPIC_EXCEPTION, with Kafka's message."""
    assert topic_name_error(name) == Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, message)


def test_names_with_the_same_metric_name_collide() -> None:
    """A dot and an underscore are the same in metric names (AdminZkClient.validateTopicCreate)."""
    message = "Topic 'a.b_c' collides with existing topics: a.b.c, a_b_c"

    assert topic_name_error("a.b_c", {"a_b_c", "a.b.c", "abc", "a.b"}) == Failure(
        ErrorCode.INVALID_TOPIC_EXCEPTION, message
    )


def test_a_name_does_not_collide_with_itself() -> None:
    """Another check finds existing topics."""
    assert collisions("a.b", {"a.b"}) == []


def test_kafkas_internal_topics_are_known() -> None:
    """Topic.INTERNAL_TOPICS."""
    assert is_internal("__consumer_offsets")
    assert not is_internal("__cluster_metadata")
