"""Decisions of the operator: pure functions from a resource and a view of the cluster to one step.

    Resource + view of the cluster ──► decide ──► Step ──► the engine carries it out and reads again

    clusters                           a folder imports only those below it
    elections   reassignments   topics
    tenants
    plans
    kafka

Pure: no socket, clock, random source, thread or log. A step is one effect; the next one is decided on what is then seen, so that
a process killed after any step, at any call, ends where one that was never killed ends.
"""
