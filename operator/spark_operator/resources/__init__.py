"""SparkApplications, their schedules and pods as immutable values: parsing and serialisation only."""
