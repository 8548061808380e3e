"""Balance analytics: from what brokers hold and take in, by partition and over days, to a move that somebody approves.

Leaves out execution: a Reassignment is the operator's.
"""
