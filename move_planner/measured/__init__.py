"""Which replicas should move when load is measured in several resources: leaders first, then few bytes.

A resource is a measure with two parts by partition: what every replica costs its broker (`each`: disk bytes, bytes in) and what
leading costs on top (`led`: bytes out, being a leader). Goals, in this order: brokers that are drained hold nothing; replicas of a
partition are in distinct racks wherever there are racks enough; no broker is brought above a capacity; each resource of each
broker is within its tolerance of its part (the mean, unless racks or capacities make that impossible). Leadership moves are
free and come first; replicas move for as few bytes as can be, with a lower bound beside the plan (`bound`). Excluded partitions
and brokers keep exactly what they have. The same request gives the same plan; what cannot be reached is said, not raised.

Algorithm (`planning`), on columns throughout:
1. What must move finds a home: replicas on drained brokers, then second replicas in a rack (`forced`).
2. Leaders are passed on between the replicas that there are (`leading`).
3. Resource by resource, the one that costs fewest bytes to level first: brokers above their range give just what is above,
   those below take just what they lack. Replicas with the most of this resource for their bytes go first, and of those the
   ones that disturb other resources least (`copying`). Hot small replicas level bytes in, then cold ones level disks.
4. Leaders again; rounds of 2 to 4 with ever less patience for what another resource's moves disturbed; then single best moves
   for what large replicas left (`finishing`).
5. If any resource of a broker ended outside its range, and worse than it was, all is done again with moves that disturb nothing.

`tests/twins/plain_measured_plan.py` is the plain twin: one best change after another, by lists. Leaves out swaps of two replicas, changes of the replication
factor (the planner of one load does those), measuring, and carrying moves out.
"""

from move_planner.measured.planning import plan_measured
from move_planner.measured.request import MeasuredRequest, Resource
from move_planner.measured.result import MeasuredPlan, ResourceFigures

__all__ = ["MeasuredPlan", "MeasuredRequest", "Resource", "ResourceFigures", "plan_measured"]
