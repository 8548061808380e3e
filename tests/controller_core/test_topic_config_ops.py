"""Operations of IncrementalAlterConfigs on a topic's map (KIP-339)."""

import pytest

from controller_core.cluster.topic_config_ops import ConfigOp, OpType, alter_configs
from kafka_node.errors import Failure
from kafka_wire.errors import ErrorCode


def test_set_and_delete() -> None:
    """Both leave the rest of the map alone; to delete what is not there is no error."""
    ops = [ConfigOp("a", OpType.SET, "1"), ConfigOp("b", OpType.DELETE), ConfigOp("c", OpType.DELETE)]

    assert {"a": "1", "d": "4"} == alter_configs({"b": "2", "d": "4"}, ops)


@pytest.mark.parametrize(
    ("before", "kind", "value", "after"),
    [
        (None, OpType.APPEND, "compact", "delete,compact"),
        ("compact", OpType.APPEND, "compact,delete", "compact,delete"),
        ("", OpType.APPEND, "compact", "compact"),
        (None, OpType.SUBTRACT, "delete", ""),
        ("compact,delete", OpType.SUBTRACT, "compact", "delete"),
        ("compact", OpType.SUBTRACT, "delete", "compact"),
    ],
)
def test_lists_grow_and_shrink_from_their_own_value_or_kafkas_default(
    before: str | None, kind: OpType, value: str, after: str
) -> None:
    """ConfigAdminManager.prepareIncrementalConfigs; cleanup.policy's default is delete."""
    present = {} if before is None else {"cleanup.policy": before}

    assert {"cleanup.policy": after} == alter_configs(present, [ConfigOp("cleanup.policy", kind, value)])


@pytest.mark.parametrize(
    ("ops", "code", "words"),
    [
        (
            [ConfigOp("a", OpType.SET, "1"), ConfigOp("a", OpType.DELETE)],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            [ConfigOp("a", OpType.SET), ConfigOp("b", OpType.APPEND)],
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : a, b",
        ),
        (
            [ConfigOp("retention.ms", OpType.APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: retention.ms",
        ),
        ([ConfigOp("foo", OpType.SUBTRACT, "1")], ErrorCode.INVALID_CONFIG, "Unknown config name: foo"),
    ],
)
def test_operations_that_cannot_be_are_refused_in_kafkas_words(
    ops: list[ConfigOp], code: ErrorCode, words: str
) -> None:
    """ConfigAdminManager.preprocess and prepareIncrementalConfigs."""
    assert Failure(code, words) == alter_configs({}, ops)
