"""The pipeline in PySpark."""
