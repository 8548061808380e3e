"""May a state machine go from one state to another? The answer as a value, shared by the two machines.

The states and tables are in `partition_machine` and `replica_machine`. Leaves out counting and logging of illegal moves.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowed:
    """The move is legal."""


@dataclass(frozen=True, slots=True)
class Illegal:
    """The move is refused: nothing changes. States by Kafka's names, predecessors in the order of Kafka's numbers."""

    current: str
    target: str
    predecessors: tuple[str, ...]

    @property
    def message(self) -> str:
        """The refusal for the log; whoever knows the partition or replica puts its name in front."""
        legal = " or ".join(self.predecessors)
        return f"cannot go from {self.current} to {self.target}: only {legal} may come before"


Transition = Allowed | Illegal

ALLOWED = Allowed()
