"""The closed systems of the protocol that runs: its machines among surroundings that fail."""
