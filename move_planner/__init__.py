"""Plans of replica moves: leadership first, then as few bytes as possible for an even cluster, with the reason of each step.

A resource is a measure with two parts per partition: `replica_load`, the load of every replica on its broker (disk bytes, bytes in), and
`leader_load`, the additional load of the leader (bytes out, the count of leaders). Goals, in this order: drained brokers hold nothing;
partitions have the requested replication factor; replicas of a partition are in distinct racks where there are enough racks; no
broker is brought above a capacity; each resource of each broker is within its tolerance of its target (the mean, unless racks or
capacities make that impossible). Leadership moves cost nothing and come first; replicas move for as few bytes as possible, and the
plan contains a lower bound (`bound`). Excluded partitions and brokers keep exactly what they have. The same request gives the same
plan. Goals that cannot be reached are listed in the plan and raise nothing.

Algorithm (`planning`), on columns throughout:
1. A smaller replication factor drops replicas (`replication_factor`). Replicas that must move are placed: those on drained brokers,
   those that a larger factor adds, then second replicas in a rack (`required_moves`).
2. Leadership moves between the existing replicas (`leadership_moves`).
3. Resource by resource, starting with the one that costs the fewest bytes: brokers above their range give only the surplus, brokers
   below it take only what they lack. Replicas with the most of this resource per byte go first, and of those the ones that disturb
   other resources least (`resource_levelling`). Small hot replicas level bytes in, then cold ones level disks.
4. Leadership again; rounds of 2 to 4 that allow less and less disturbance of other resources; then the best single moves for the
   rest that large replicas leave (`single_changes`).
5. If any resource of a broker ends outside its range and worse than before, steps 2 to 4 are repeated without any disturbance.

Plans over one load (`one_load`) are plans with one resource; preferred leaders are then balanced by count (`preferred_leaders`), and
a budget cuts the steps short. `tests/twins` has a plain twin of each: one best change after another, on lists.
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
