"""The usual parts of a job, so that one needs no `Program` of one's own: source, map, sink, and
coordinators beside them.

Users find them in `epochgate.pipeline`, with `Pipeline` of `spark/pipeline.py`, which starts them
in a Spark session.
"""
