"""Proposals of moves from measured loads, planned by `move_planner`."""
