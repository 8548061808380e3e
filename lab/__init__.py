"""Real peers as local processes, for tests, the demo and benchmarks; not shipped."""
