"""Times of an election in the logs of its voters, to the millisecond: the start of the round that was won, and its end.

Steward's voters and Kafka's controllers write a line when a voter starts to ask for votes, before it has sent or stored anything, and one when
it leads, which it has stored by then. Both clocks are that of the machine.
"""

import datetime as dt
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_JAVA = re.compile(r"\[([-\d]+ [:\d]+,\d+)\] INFO .* Completed transition to (\w+)\(.*?\bepoch=(\d+)")
_JAVA_STAMP = "%Y-%m-%d %H:%M:%S,%f"
_JAVA_STARTS = ("ProspectiveState",)
_JAVA_LEADS = ("Leader", "LeaderState")

STARTED = "Started an election"
CHANGED = "Quorum's epoch or leader changed"


@dataclass(frozen=True, slots=True)
class Transition:
    """A voter that starts to ask for votes in an epoch, or leads it."""

    at_s: float
    """Since 1970."""
    epoch: int
    leads: bool


@dataclass(frozen=True, slots=True)
class Round:
    """The round of votes that was won, from the winner's first request for a pre-vote to its leadership."""

    started_s: float
    """Since 1970."""
    elected_s: float


def transitions(log_text: str, node_id: int) -> Iterator[Transition]:
    """Yield the transitions of one voter, of either program, in the order of its log."""
    for line in log_text.splitlines():
        found = _steward(line, node_id) if line.startswith("{") else _java(line)
        if found is not None:
            yield found


def round_after(epoch: int, logs: Iterable[tuple[int, str]]) -> Round:
    """Return the first round whose leader's epoch is above `epoch`, from the logs by voter. Raises ValueError without one."""
    won: list[tuple[int, Round]] = []
    for node_id, text in logs:
        started_s = None
        for transition in transitions(text, node_id):
            if not transition.leads:
                started_s = transition.at_s
            elif transition.epoch > epoch and started_s is not None:
                won.append((transition.epoch, Round(started_s, transition.at_s)))
    if not won:
        raise ValueError(f"The logs have no election after epoch {epoch}.")
    return min(won, key=lambda transition: transition[0])[1]


def _steward(line: str, node_id: int) -> Transition | None:
    fields = json.loads(line)
    leads = fields["message"] == CHANGED and fields["leader"] == node_id
    if not leads and fields["message"] != STARTED:
        return None
    return Transition(dt.datetime.fromisoformat(fields["time"]).timestamp(), fields["epoch"], leads)


def _java(line: str) -> Transition | None:
    found = _JAVA.match(line)
    if found is None or found[2] not in _JAVA_STARTS + _JAVA_LEADS:
        return None
    at_s = dt.datetime.strptime(found[1], _JAVA_STAMP).timestamp()  # noqa: DTZ007 - Kafka's log has the local time
    return Transition(at_s, int(found[3]), found[2] in _JAVA_LEADS)
