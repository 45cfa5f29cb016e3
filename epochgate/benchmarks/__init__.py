"""What `epochgate bench` measures, one module for each question."""
