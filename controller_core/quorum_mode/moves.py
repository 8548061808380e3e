"""Moves of partitions in KRaft mode.

A move has no stages: the record that starts it has the lists, and the AlterPartition that brings its last replica into the ISR also ends
it (`rules.complete_change`). A move that only removes or reorders replicas, and a cancellation, end in the record that starts them; a move
back to the origin does not while only added replicas are in sync. Replicas that a changed move no longer adds leave at its end.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from controller_core.decisions.reassignment import Results, keeps_service, plan_moves
from controller_core.model import Cluster, Move, changes, events
from controller_core.model.columns import pad
from controller_core.model.decision import Decision
from controller_core.model.move import without
from controller_core.rules.complete_change import Target, complete_change, electing


def decide_alter_reassignments(cluster: Cluster, event: events.AlterReassignments) -> Decision[Results]:
    """Write the valid moves, and return the errors of the others."""
    planned = plan_moves(cluster, event)
    written = _start_moves(cluster, planned.moves)
    return Decision(() if written is None else (written,), reply=planned.results)


def _start_moves(cluster: Cluster, planned: Mapping[str, Mapping[int, Move]]) -> changes.PartitionStates | None:
    """Start moves: those whose replicas are in sync already end at once."""
    columns = cluster.columns
    found = {
        row: move
        for topic, of_topic in planned.items()
        for partition, move in of_topic.items()
        if (row := cluster.row_of(topic, partition)) is not None
    }
    replicas, isr = [], []
    moves: dict[int, Move | None] = {}
    for row, move in found.items():
        ends = move.returns_to_origin and keeps_service(cluster, row, move.target)
        replicas.append(move.target if ends else move.replicas)
        isr.append(without(columns.isr_of(row), move.removing) if ends else columns.isr_of(row))
        # A replica that is added and removed was being added by a move that this one changes.
        moves[row] = None if ends else replace(move, adding=without(move.adding, move.removing))
    rows = np.array(list(found), dtype=np.int32)
    return complete_change(cluster, rows, Target(pad(isr), pad(replicas), moves), electing(cluster, rows))
