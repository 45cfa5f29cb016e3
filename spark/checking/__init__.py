"""Explores a closed system as jobs on a Spark cluster: `check_on_spark`."""

from epochgate.spark.checking.checking import check_on_spark

__all__ = ["check_on_spark"]
