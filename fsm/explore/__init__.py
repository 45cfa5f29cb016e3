"""Searches the states of closed systems: exact, breadth-first, with the shortest counterexamples."""
