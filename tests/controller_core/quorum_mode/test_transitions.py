"""State transitions of KRaft mode: the table of changes."""

from typing import get_args

import pytest

from controller_core.model.changes import Change
from controller_core.model.zookeeper_changes import ZooKeeperChange
from controller_core.quorum_mode.transitions import TRANSITIONS, apply
from tests.controller_core.quorum_mode.driver import QuorumDriver


def test_every_change_of_kraft_mode_has_a_transition() -> None:
    """A change of another type is a defect and is not ignored."""
    assert TRANSITIONS.keys() == set(get_args(Change)) - set(get_args(ZooKeeperChange))
    with pytest.raises(KeyError):
        apply(QuorumDriver().cluster, object())
