"""ZooKeeper mode, as the controller's loop uses it."""

from controller_core.shell.mode import Mode
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.propagation import (
    apply_and_build_requests,
    full_metadata_request,
    leader_and_isr_requests,
)

ZOOKEEPER_MODE = Mode(
    decide=decide,
    apply=apply_and_build_requests,
    full_metadata_request=full_metadata_request,
    leader_and_isr_requests=leader_and_isr_requests,
)
