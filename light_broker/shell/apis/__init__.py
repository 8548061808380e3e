"""APIs of the broker, one module each. `table` lists them with their versions and handlers."""
