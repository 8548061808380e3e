"""ZooKeeper mode, as the controller's loop uses it."""

from controller_core.shell.mode import Mode
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.propagation import carry_out, full_metadata, lead_or_follow

ZOOKEEPER_MODE = Mode(decide=decide, apply=carry_out, full_metadata=full_metadata, lead_or_follow=lead_or_follow)
