"""Benchmarks of the sampler and the balance analytics."""
