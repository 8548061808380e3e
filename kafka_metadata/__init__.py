"""Metadata of a KRaft cluster: its records, and the image that they make.

Controllers and brokers of KRaft mode read the same log and write the same snapshots, so this package is below both, and imports no numpy: a
light process loads it (ADR 55).
"""
