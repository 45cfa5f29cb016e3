"""The same coordinator job on Apache Flink and on epochgate, in turn: `make bench-flink`."""
