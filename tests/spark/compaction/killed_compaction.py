"""Compactions that are killed (-9) at each of their steps on the disk; run by test_crashes.

python -m tests.spark.compaction.killed_compaction TARGETS

TARGETS holds copies of one target, named 0, 1, 2 and so on. A process compacts each and kills
itself before the step of that number, until one gets to its end. Prints how many were killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from epochgate.runtime.filesystem import AnyPath, LocalFileSystem
from epochgate.runtime.testing.faulty_filesystem import FaultyFileSystem
from epochgate.spark.compaction import compact


class DeadlyFileSystem(FaultyFileSystem):
    """Kills its process before the operation of this number."""

    def __init__(self, at: int) -> None:
        super().__init__(LocalFileSystem())
        self._at = at

    def mutate(
        self,
        name: str,
        path: AnyPath,
        whole: Callable[[], None],
        half: Callable[[], None] | None = None,
    ) -> None:
        if len(self.operations) == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        super().mutate(name, path, whole, half)


def main(targets: str) -> None:
    """One process for each step; a fork of this one, which has imported everything."""
    number = 0
    while True:
        child = os.fork()
        if child == 0:
            compact(os.path.join(targets, str(number)), files=DeadlyFileSystem(number))
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0, number
            break
        number += 1
    sys.stdout.write(f"{number}\n")


if __name__ == "__main__":
    main(sys.argv[1])
