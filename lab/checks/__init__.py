"""Loads, histories of writes, and what contradicts them."""
