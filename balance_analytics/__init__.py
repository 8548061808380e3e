"""Balance analytics: measures the load of partitions over days and proposes moves that balance it, for approval.

Leaves out execution: the operator carries out Reassignments.
"""
