"""Benchmarks of the operator: resources from their creation until they are done."""
