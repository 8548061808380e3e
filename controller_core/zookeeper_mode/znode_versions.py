"""Versions of the znodes whose contents the cluster's state has: the table of one active term's store.

Decisions know no versions. Reading adds the version of each znode to its event, the store gets the event together with the changes
that were decided on it, and each conditional write names the version that its content was computed from:

    expected    A change that follows from a znode as it was read is valid for the version that the event names; every other change
                for the known version. This is computed in the step of the event loop in which the decision was made.
    note        The known version changes with the cluster's state: after a change was applied, never when a znode is only read. A write
                that was computed from an older state is therefore refused, whatever was read in the meantime.

After a refused write nothing is noted; the znode is read again, and the version is noted with the change that applies what was found.
Partition states are not in the table: their version is the partition epoch, which brokers know as well (KIP-497).
"""

from collections.abc import Mapping

from controller_core.model import Origin, changes, events, zookeeper_changes, zookeeper_events

NO_ZNODE = -1
"""Version in place of a znode that does not exist."""

Versions = Mapping[str, int]
"""By topic for the znodes of topics, by path for the others; no topic has a name with a slash."""


def versions_read(event: events.Event) -> Versions:
    """Return the versions of the znodes that an event was read from."""
    match event:
        case zookeeper_events.TopicsRead(added=records) | zookeeper_events.TopicsChanged(topics=records):
            return {record.name: record.version for record in records}
        case zookeeper_events.ReviewReassignmentRequests(
            found=zookeeper_events.ReassignmentRequestsRead(version=version)
        ):
            return {zookeeper_events.REASSIGNMENT_REQUESTS: version}
        case zookeeper_events.RemoveElectionRequests(found=found):
            return {zookeeper_events.ELECTION_REQUESTS: found.version}
        case _:
            return {}


class ZnodeVersions:
    """The known versions. Empty when a term begins; loading fills it."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def known(self, name: str) -> int:
        """Return the version of a topic's znode, or of the znode of a path; NO_ZNODE if none is known."""
        return self._known.get(name, NO_ZNODE)

    def expected(self, change: changes.Change, read: Versions) -> int:
        """Return the version for which a change is valid; `read` has the versions of its event.

        NO_ZNODE: the change creates its znode, or no znode with a version. Raises KeyError if the version of an existing znode is
        not known: a write without a version would overwrite anything.
        """
        match change:
            case changes.TopicAdded(origin=Origin.REQUESTED):
                return NO_ZNODE
            case (
                changes.TopicAdded(name=topic)
                | zookeeper_changes.TopicObserved(name=topic)
                | zookeeper_changes.AssignmentRestored(topic=topic)
            ):
                return read[topic]
            case (
                changes.PartitionsAdded(topic=topic)
                | zookeeper_changes.TopicIdAssigned(topic=topic)
                | zookeeper_changes.MovesStarted(topic=topic)
                | zookeeper_changes.MovesFinished(topic=topic)
            ):
                return self._known[topic]
            case zookeeper_changes.PendingReassignmentRequestsChanged():
                path = zookeeper_events.REASSIGNMENT_REQUESTS
                return read[path] if path in read else self._known[path]
            case zookeeper_changes.ElectionRequestsProcessed():
                return read[zookeeper_events.ELECTION_REQUESTS]
            case changes.ProducerIdsAllocated():
                return self.known(events.PRODUCER_IDS)
            case changes.ProducerIdsObserved():
                return read[events.PRODUCER_IDS]
            case _:
                return NO_ZNODE

    def is_stale(self, change: changes.Change, expected: int) -> bool:
        """Whether a change follows from a topic's znode that was read before the known version was written or read."""
        match change:
            case zookeeper_changes.TopicObserved(name=topic) | zookeeper_changes.AssignmentRestored(topic=topic):
                return expected <= self.known(topic)
            case _:
                return False

    def note(self, change: changes.Change, expected: int) -> None:
        """Note the version after an applied change, which was valid for the version `expected`."""
        match change:
            case changes.TopicAdded(name=topic, origin=origin):
                self._known[topic] = expected + (origin is not Origin.OBSERVED)
            case zookeeper_changes.TopicObserved(name=topic):
                self._known[topic] = expected
            case (
                changes.PartitionsAdded(topic=topic)
                | zookeeper_changes.TopicIdAssigned(topic=topic)
                | zookeeper_changes.AssignmentRestored(topic=topic)
                | zookeeper_changes.MovesStarted(topic=topic)
                | zookeeper_changes.MovesFinished(topic=topic)
            ):
                self._known[topic] = expected + 1
            case changes.TopicRemoved(topic=topic):
                self._known.pop(topic, None)
            case zookeeper_changes.PendingReassignmentRequestsChanged(targets=targets, origin=origin):
                if targets:
                    is_written = origin is Origin.REQUESTED
                    self._known[zookeeper_events.REASSIGNMENT_REQUESTS] = expected + is_written
                else:  # The znode is deleted with the last request.
                    self._known.pop(zookeeper_events.REASSIGNMENT_REQUESTS, None)
            case changes.ProducerIdsAllocated():
                self._known[events.PRODUCER_IDS] = expected + 1
            case changes.ProducerIdsObserved():
                self._known[events.PRODUCER_IDS] = expected
            case _:
                pass
