"""Benchmarks of placement and plans of moves."""
