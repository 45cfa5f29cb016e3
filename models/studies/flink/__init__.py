"""The checkpointing of operator coordinators as Apache Flink has it now, and its hazards."""
