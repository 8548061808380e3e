"""ZooKeeper mode, as the controller's loop uses it."""

from controller_core.shell.mode import Mode
from controller_core.zookeeper_mode import propagation
from controller_core.zookeeper_mode.decide import decide

ZOOKEEPER_MODE = Mode(
    decide=decide,
    apply=propagation.apply_and_build_requests,
    full_metadata_request=propagation.full_metadata_request,
    leader_and_isr_requests=propagation.leader_and_isr_requests,
)
