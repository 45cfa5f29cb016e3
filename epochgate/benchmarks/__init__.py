"""The benchmarks of `epochgate bench`, one module for each question."""
