"""From measured loads to a proposal, by `move_planner`. Leaves out approval and execution."""
