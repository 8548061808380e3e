"""Which replicas should move: leaders first, then few bytes for an even cluster, and why each of them.

A resource is a measure with two parts by partition: what every replica costs its broker (`each`: disk bytes, bytes in) and what
leading costs on top (`led`: bytes out, being a leader). Goals, in this order: brokers that are drained hold nothing; partitions have
the replication factor that is asked for; replicas of a partition are in distinct racks wherever there are racks enough; no broker
is brought above a capacity; each resource of each broker is within its tolerance of its part (the mean, unless racks or capacities
make that impossible). Leadership moves are free and come first; replicas move for as few bytes as can be, with a lower bound
in the plan (`bound`). Excluded partitions and brokers keep exactly what they have. The same request gives the same plan; what
cannot be reached is listed in the plan and raises nothing.

Algorithm (`planning`), on columns throughout:
1. A smaller replication factor drops replicas (`factor`). What must move finds a home: replicas on drained brokers, replicas that
   a larger factor adds, then second replicas in a rack (`forced`).
2. Leaders are passed on between the replicas that there are (`leading`).
3. Resource by resource, the one that costs fewest bytes to level first: brokers above their range give only what is above,
   those below take only what they lack. Replicas with the most of this resource for their bytes go first, and of those the
   ones that disturb other resources least (`copying`). Hot small replicas level bytes in, then cold ones level disks.
4. Leaders again; rounds of 2 to 4 with ever less patience for what another resource's moves disturbed; then single best moves
   for what large replicas left (`finishing`).
5. If any resource of a broker ended outside its range, and worse than it was, all is done again with moves that disturb nothing.

Plans over one load (`one_load`) are plans with one resource; preferred leaders are then spread by count (`leaders`), and a budget
cuts the steps short. `tests/twins` has a plain twin of each: one best change after another, by lists. Measuring loads and
carrying moves out are not here.
"""

from move_planner.one_load import PlanRequest, plan_moves
from move_planner.planning import plan_measured
from move_planner.request import MeasuredRequest, Resource
from move_planner.result import Plan, Reason, ResourceFigures, Step, Unreached

__all__ = [
    "MeasuredRequest",
    "Plan",
    "PlanRequest",
    "Reason",
    "Resource",
    "ResourceFigures",
    "Step",
    "Unreached",
    "plan_measured",
    "plan_moves",
]
