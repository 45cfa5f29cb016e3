"""Programs that the Python of the other loaders runs."""
