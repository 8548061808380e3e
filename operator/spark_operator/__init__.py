"""The operator of SparkApplication and ScheduledSparkApplication resources."""
