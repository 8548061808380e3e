"""Figures of uneven, growing and nearly full resources: pure functions over arrays."""
