"""The pipeline in PySpark. Leaves out the study's arithmetic."""
