"""Decisions about SparkApplications and their schedules: pure functions from a resource and a view of its pods to one step."""
