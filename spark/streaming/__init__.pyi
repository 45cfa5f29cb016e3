"""The names of `epochgate.spark.streaming`, and where they are defined."""
