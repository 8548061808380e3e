"""From measured loads to a proposal, by the controller core's planner. Leaves out approval and execution."""
