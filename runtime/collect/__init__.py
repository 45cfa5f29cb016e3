"""Collects the rows of a running job in the driver: exactly once, in order, with back pressure.

A `CollectSinkOperator` in each subtask's program buffers rows, a `CollectSinkProvider` in the job's
configuration makes their coordinator, and `collect` (on a handle, `job.collect`) gives the rows to
its caller, which iterates::

    task      rows 0..  -> buffer  ---[rows 0..7]--->          |snapshot N: 12|  ---[rows 8..]--->
    driver             <--[send up to 8]--- held back ........ N complete: hand over up to 12
    client                                                     0 1 2 3 ...

Each subtask numbers its rows. A checkpoint holds the rows that are not consumed yet and the number
of the next one; what comes after that number is held back until a later checkpoint is complete, and
is thrown away when the subtask goes back. The idea is Apache Flink's CollectSinkFunction and its
coordinator; the way of the rows is our own, as tasks and coordinator have an ordered connection.

Names are imported when they are first used: a worker needs few of them.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
