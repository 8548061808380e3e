"""Which replicas should move: few bytes for an even cluster, and why each of them.

Goals, in this order: drained brokers hold nothing; replicas of a partition are in distinct racks wherever there are racks
enough; every broker is within 5 percent of its part of the load (or one replica of the usual size, where that is more);
preferred leaders are spread the same way. All of that for as few bytes copied as can be, with a lower bound beside the plan.
Constraints: the same request gives the same plan; nothing here draws numbers, and what cannot be reached is said, not raised.

Algorithm (`planning`): everything happens on columns (`table`), in this order.
1. A changed replication factor drops replicas or asks for more (`factor`).
2. What must move finds a home: replicas on brokers that are drained, then second replicas in one rack (`placing`).
3. Brokers above their range give away just what is above; brokers below it then take just what they lack (`levelling`).
   Homes are found for thousands of replicas at a time: they are laid side by side along the room that brokers have left.
4. Single moves, the best each, where large replicas kept a broker out of its range (`polishing`).
5. Steps are put in order and cut at the budget (`ordering`); what is left standing is given even leaders (`leaders`).

`tests/twins/plain_plan.py` is the plain twin: one best move after another, by lists.

Leaves out carrying moves out (`cluster.reassignment`) and measuring loads; plans over several measured resources are `measured`.
"""

from move_planner.planning import plan_moves
from move_planner.request import PlanRequest
from move_planner.result import Plan, Reason, Step, Unreached

__all__ = ["Plan", "PlanRequest", "Reason", "Step", "Unreached", "plan_moves"]
