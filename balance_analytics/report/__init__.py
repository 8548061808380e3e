"""Report of a study: one HTML page, pictures, a summary and metrics."""
