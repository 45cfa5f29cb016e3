"""Exactly-once ingestion of files into a Parquet directory: the operators, their coordinator, and the job made of them."""
