"""Sources of one's own: an enumerator on the driver that hands out splits, readers in the tasks.

What a user writes is a `Source` with its `SplitEnumerator` (`SplitQueueEnumerator` will often do)
and its `SourceReader`; a `SourceProvider` puts it into the job's configuration, a `SourceOperator`
into its program. Each record is read once with respect to checkpoints, whatever fails: a split
travels as an event of the coordinator, and the position in it is the reader's state.

Names are imported when they are first used: a worker needs few of them.
"""

from epochgate.lazy import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
