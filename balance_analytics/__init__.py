"""Balance analytics: measures the load of partitions over days and proposes moves that balance it, for approval."""
