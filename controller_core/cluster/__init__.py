"""Pure decisions: `decide(cluster, event) -> Decision` and the one place that changes state, `apply`."""
