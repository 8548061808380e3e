"""Coordinators of groups, on the logs of `__consumer_offsets`."""
