"""Jobs whose user code hangs for ever, one after the other; then the interpreter exits.

Run as a module by `test_hanging_ends.py`, which reads how each of them has ended.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from epochgate.runtime.shell.futures import for_client
from epochgate.runtime.testing.scripted import Script
from tests.runtime.hung import EndingTask, Hung
from tests.runtime.test_hanging_ends import LIMIT_S, CommitterThatHangs, StoreThatHangs

NEVER = threading.Event()


def canceled(door: str, job: Hung) -> None:
    job.loop.master.cancel()
    said(door, job)


def said(door: str, job: Hung) -> None:
    sys.stdout.write(f"{door}: {job.loop.join(30).state}\n")


def hanging_at(place: str, **settings: Any) -> Hung:
    script = Script()
    script.hang_at(place)
    return Hung(script, end_timeout_s=LIMIT_S, **settings)


def main() -> None:
    canceled("store.close", Hung(Script(), store=StoreThatHangs(NEVER), end_timeout_s=LIMIT_S))
    canceled("committer.close", Hung(Script(), CommitterThatHangs(NEVER), end_timeout_s=LIMIT_S))
    canceled("op.close", hanging_at("op.close"))
    asked = hanging_at("op.handle_client_request")
    asked.loop.master.request("op", "a question")
    canceled("op.handle_client_request", asked)
    held = Hung(Script())
    answered = for_client(held.loop.master.request("op", "a question"))
    answered.add_done_callback(lambda _: NEVER.wait())
    answered.exception(30)
    canceled("a callback", held)
    said("op.close", hanging_at("op.close", task=EndingTask))


if __name__ == "__main__":
    main()
