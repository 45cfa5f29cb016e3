"""Explores a closed system as jobs on a Spark cluster: `check_on_spark`."""

from epochgate.spark.checking.checking import SETTINGS, check_on_spark, require_suited

__all__ = ["SETTINGS", "check_on_spark", "require_suited"]
