"""Reconcilers of SparkApplications and their schedules, drivers as pods or child processes, and gauges."""
