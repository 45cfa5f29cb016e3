"""Exactly-once ingestion of files into a Parquet directory: operators, coordinators, and the job.

Names are imported when they are first used, because tasks import from here too and need little.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
"""The names of `epochgate.spark.ingest`, and where they are defined."""
