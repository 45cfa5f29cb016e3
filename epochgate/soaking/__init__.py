"""The rounds of `epochgate soak`: real ingestions, killed over and over, verified by DuckDB."""
