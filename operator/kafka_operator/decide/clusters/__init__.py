"""Decisions on Clusters, their pods, and their automatic Reassignments."""
