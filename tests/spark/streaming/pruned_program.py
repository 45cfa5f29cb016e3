"""A driver whose query reads files that a control prunes, which the test kills: pruned_program.py
FOLDER BATCH.

Each batch is written into a directory of its own, replaced as a whole when it runs again. In BATCH
the driver says so and waits, between the plan and the first write, to be killed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from epochgate.spark.session import local_session
from epochgate.spark.streaming import Control
from tests.spark.streaming import reading_program
from tests.spark.streaming.reading_program import say

KILLED_S = 100.0
WHERE = "region IN :regions AND id >= :least"


def control_in(folder: Path) -> Control:
    """The control of the query in a folder."""
    return Control("reading", {"regions": None, "least": 0}, store=str(folder / "controls"))


def run_query(spark: Any, folder: Path, *, waits_in: int = -1) -> None:
    """Run the query until what is there now is read or pruned."""

    def wait_to_be_killed(batch: int) -> None:
        if batch == waits_in:
            say(f"batch {batch} is planned")
            time.sleep(KILLED_S)  # the test kills this process meanwhile

    reading_program.run_query(
        spark,
        folder,
        control_in(folder).source_options(WHERE),
        schema="id long, region string",
        before=wait_to_be_killed,
    )


if __name__ == "__main__":
    with local_session("local[1]") as session:
        run_query(session, Path(sys.argv[1]), waits_in=int(sys.argv[2]))
