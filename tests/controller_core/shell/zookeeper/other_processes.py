"""Writes of other processes and lost answers, as commands of golden scripts.

znode PATH [DATA]          a process writes a znode, with its parents
delete PATH                a process deletes a znode and its descendants
before write COMMAND       runs just before the next transaction; several are used one after the other; `nothing` skips one
before read PATH: COMMAND  runs just before the next read of that path
next done / not done       the answer to the next transaction is lost      next too large    it is not sent
"""

from kafka_zookeeper.writes import Refused, RefusedReason
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeZooKeeper, Fault

FAULTS = {
    "done": Fault.DONE,
    "not done": Fault.NOT_DONE,
    "too large": Refused(-1, RefusedReason.TOO_LARGE),
}


class OtherProcesses:
    """Other processes with sessions at the same ZooKeeper; subclasses add commands."""

    def __init__(self) -> None:
        self.server = FakeZooKeeper()

    def run_other(self, command: str) -> None:
        """Run a command of another process, now or just before a request."""
        verb, _, rest = command.partition(" ")
        match verb:
            case "znode":
                path, _, data = rest.partition(" ")
                self.server.put(path, data.encode() if data else None)
            case "delete":
                self.server.drop(rest)
            case "before":
                self._run_before(*rest.split(" ", 1))
            case "next":
                self.server.faults.append(FAULTS[rest])
            case "nothing":
                pass
            case _:
                raise ValueError(f"no such command: {command}")

    def _run_before(self, kind: str, rest: str) -> None:
        """Run a command just before the next write, or the next read of a path."""
        if kind == "read":
            path, _, command = rest.partition(": ")
            self.server.before_reads.append((path, lambda: self.run_other(command)))
        else:
            self.server.before_writes.append(lambda: self.run_other(rest))
