"""History of a quorum under faults, and what contradicts it: Q1, Q2, Q7 and Q8 of docs/invariants.md.

Its leaders come from the voters' quorum-state files, its committed records from the logs of Steward voters, which report their high
watermarks.
"""

from collections.abc import Iterator, Mapping


class History:
    """Leaders by epoch, epochs by node, and all records that were committed, as bytes of the log."""

    def __init__(self) -> None:
        self.committed = b""
        """The log from its start to the highest high watermark that any voter had."""
        self.leaders: dict[int, int] = {}
        self._epochs: dict[int, int] = {}

    def add_election(self, node_id: int, leader_id: int, epoch: int) -> Iterator[str]:
        """Add what a node's quorum-state has (-1: no leader, no file); yield what it breaks."""
        if epoch < 0:
            return
        before = self._epochs.get(node_id, epoch)
        if epoch < before:
            yield f"Q2: node {node_id} went from epoch {before} back to {epoch}"
        self._epochs[node_id] = epoch
        if leader_id >= 0 and self.leaders.setdefault(epoch, leader_id) != leader_id:
            yield f"Q1: epoch {epoch} has leader {self.leaders[epoch]}, and on node {node_id} leader {leader_id}"

    def add_committed(self, node_id: int, records: bytes) -> Iterator[str]:
        """Add a node's log up to its high watermark; yield what it breaks."""
        shorter, longer = sorted((self.committed, records), key=len)
        if longer.startswith(shorter):
            self.committed = longer
        else:
            yield f"Q7: node {node_id} has other committed records from byte {common_bytes(shorter, longer)} on"

    def lost(self, logs: Mapping[int, bytes]) -> Iterator[str]:
        """Yield the nodes whose logs lack committed records. Their logs must have arrived at what was committed."""
        for node_id, log in logs.items():
            if not log.startswith(self.committed):
                same = common_bytes(log, self.committed)
                yield f"Q7: node {node_id} has only {same} of {len(self.committed)} committed bytes"


def differences(logs: Mapping[int, bytes]) -> Iterator[str]:
    """Yield the nodes whose logs are not the beginning of the longest one: Q8, for logs that one leader has replicated."""
    longest = max(logs, key=lambda node_id: len(logs[node_id]))
    for node_id, log in logs.items():
        if not logs[longest].startswith(log):
            same = common_bytes(log, logs[longest])
            yield f"Q8: the logs of nodes {node_id} and {longest} differ from byte {same} on"


def common_bytes(one: bytes, other: bytes) -> int:
    """Return how many bytes two logs have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
