"""The looks for new files: the source of `FoundFiles` is a directory, which the looks of production
list and look at, beside a queue that does as it is told.

Timers and work are moved by the schedule, and so is what the queue's thread posts. A checkpoint
holds the snapshot of the enumeration; another enumerator restores it.
"""

from __future__ import annotations

import queue
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, cast
from unittest import mock

from epochgate.fsm.machine import Machine
from epochgate.models.closed.discovering import FoundFiles
from epochgate.models.closed.surroundings.discovering import CONFIRM, HEAR, LIST, LOOK, NOTHING
from epochgate.runtime.source import SplitEnumeratorContext
from epochgate.runtime.source.generation import Generation
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.found import Found
from epochgate.spark.ingest import discovering
from epochgate.spark.ingest.discovering import REST_S, Discovering
from epochgate.spark.ingest.hints.hint import Heard, HintsFailed
from tests.playing.gates import Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.runtime.source.by_hand import HandContext

PATIENCE_S: Final = 10.0
LIST_EVERY_S: Final = 300.0


class PlayedProcess(Process):
    at_once = frozenset({"hear", "confirm"})


class PlayedQueue:
    """A queue whose answers are given by the schedule; `asked` says what it is asked."""

    name = "the queue"

    def __init__(self) -> None:
        self.asked: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[Heard | None] = queue.SimpleQueue()
        self.receipts: Sequence[Any] = ()

    def hear(self, wait_s: float) -> Heard:
        self.asked.put(HEAR)
        return self._answer()

    def confirm(self, receipts: Sequence[Any]) -> None:
        self.receipts = receipts
        self.asked.put(CONFIRM)
        self._answer()

    def close(self) -> None:
        self.answers.put(None)

    def _answer(self) -> Heard:
        answer = self.answers.get(timeout=PATIENCE_S)
        if answer is None:
            raise HintsFailed(self.name, "it is gone")
        return answer


class PlayedContext(HandContext):
    """Timers by their times, and posts that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        self.posted.put(lambda: call(*arguments))


class Discoverings:
    """The world of `FoundFiles`."""

    def __init__(self, system: FoundFiles, lie: Lie = the_truth) -> None:
        self.system, self.lie = system, lie
        self._folder = tempfile.TemporaryDirectory()
        self.root = Path(self._folder.name)
        (self.root / "layout.jsonl").write_text('{"a": 1}\n')
        self.files = self._fresh()
        self.files.discover()
        self.stored = self.files.snapshot()
        self.said: set[int] = set()
        self.given: set[int] = set()
        self.told: set[int] = set()
        self.taken: dict[int, int] = {}
        self.losses = self.doubles = self.failures = 0
        self.is_unsettled = self.has_begun = False
        self._found: tuple[Callable[..., None], Any] = (lambda *_: None, None)
        self._make()

    def _fresh(self) -> FileEnumeration:
        return FileEnumeration(self.root, follow=True, settle_s=0.0)

    def _make(self) -> None:
        self.process, self.context, self.queue = PlayedProcess(), PlayedContext(), PlayedQueue()
        self.generation = Generation(cast(Any, self.context), cast(Any, None))
        self.asked, self.has_begun = NOTHING, False
        slowest = self.system.slowest
        made = gated(self.process, self.lie, slowest=slowest)
        with mock.patch.object(discovering, "Handles", made):
            self.shell = Discovering(
                cast(SplitEnumeratorContext, self.generation),
                self.files.scout(),
                self.queue,
                LIST_EVERY_S,
                self._adopt,
                self._fail,
            )

    def _adopt(self, found: Found) -> None:
        for path, known in found.known.files.items():
            if known is not None and Path(path).stem.isdecimal():
                number = int(Path(path).stem)
                self.taken[number] = self.taken.get(number, 0) + 1
        self.files.adopt(found)

    def _fail(self, error: BaseException) -> None:
        raise error

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        yield "discovery", (), self.process.system.discovery

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        source, files = self.system.source, self.system.file
        yield "what is asked", source.asked, self.asked
        yield "the time to the next listing", source.is_waiting, self._has_timer(is_rest=False)
        rest_s = REST_S * 2.0 ** (self.system.discovery.failures - 1)
        rests = [delay_s for delay_s, _ in self.context.timers if delay_s != LIST_EVERY_S]
        yield "the time of rest", [rest_s] * source.is_resting, rests
        for number, file in enumerate(files):
            yield f"file {number}", file.is_there, self.path(number).exists()
            yield f"file {number} known", file.is_known, self._knows(number)
            yield f"file {number} taken", file.taken, self.taken.get(number, 0)
            yield f"hint {number} given", file.is_given, number in self.given
            yield f"hint {number} said", file.is_said, number in self.said

    def _has_timer(self, *, is_rest: bool) -> bool:
        return any((delay_s != LIST_EVERY_S) == is_rest for delay_s, _ in self.context.timers)

    def _knows(self, number: int) -> bool:
        return str(self.path(number)) in self.files.seen

    def path(self, number: int) -> Path:
        return self.root / f"{number}.jsonl"

    def _settle(self) -> None:
        """Find out what the shell asks for: a look, which sees what is there now, or the queue."""
        state = self.process.system.discovery.state
        self.asked = NOTHING
        if self.context.work:
            (work, then), self.context.work = self.context.work[0], []
            self._found = then, work()
            self.asked = LIST if state == "listing" else LOOK
            self.is_unsettled = self.is_unsettled and self.asked == LOOK
        elif state in ("hearing", "confirming"):
            self.asked = self.queue.asked.get(timeout=PATIENCE_S)

    def _posted(self) -> None:
        self.context.posted.get(timeout=PATIENCE_S)()
        self._settle()

    def begin(self) -> None:
        self.has_begun = True
        self.shell.start()
        self._settle()

    def arrive(self, number: int) -> None:
        self.path(number).write_text('{"a": 1}\n')
        self.said.add(number)

    def arrive_unsaid(self, number: int) -> None:
        self.losses += 1
        self.path(number).write_text('{"a": 1}\n')

    def repeat(self, number: int) -> None:
        self.doubles += 1
        self.said.add(number)

    def _give(self) -> Heard:
        self.given |= self.said
        self.told, self.said = set(self.said), set()
        return Heard(dict.fromkeys(str(self.path(one)) for one in self.told), [*self.told])

    def give_out(self) -> None:
        self.queue.answers.put(self._give())
        self._posted()

    def name_others(self) -> None:
        self.doubles += 1
        self.queue.answers.put(Heard({}, ["of another"]))
        self._posted()

    def be_silent(self) -> None:
        if self.is_unsettled:
            # As a look would have left it.
            self.shell._unsettled = (str(self.root / "unsettled.jsonl"),)
        self.queue.answers.put(Heard())
        self._posted()

    def unsettle(self) -> None:
        self.doubles += 1
        self.is_unsettled = True

    def refuse(self) -> None:
        self.told = set()
        self.queue.answers.put(None)
        self._posted()

    def lose_answer(self) -> None:
        self._give()
        self.refuse()

    def return_hints(self) -> None:
        back = self.given - self.told
        self.given -= back
        self.said |= back

    def end_look(self) -> None:
        self.is_unsettled = False
        self.shell._unsettled = ()
        self.end_listing()

    def end_listing(self) -> None:
        then, found = self._found
        then(found, None)
        self._settle()

    def forget_hints(self) -> None:
        assert set(self.queue.receipts) <= self.told | {"of another"}, "what was told is confirmed"
        self.given -= self.told
        self.told = set()
        self.queue.answers.put(Heard())
        self._posted()

    def _be_over(self, *, is_rest: bool) -> None:
        (timer,) = [one for one in self.context.timers if (one[0] != LIST_EVERY_S) == is_rest]
        self.context.timers.remove(timer)
        timer[1]()
        self.context.finish_work()
        if self.asked == NOTHING:
            self._settle()

    def end_wait(self) -> None:
        self._be_over(is_rest=False)

    def end_rest(self) -> None:
        self._be_over(is_rest=True)

    def store(self) -> None:
        self.stored = self.files.snapshot()

    def go_back(self) -> None:
        self.failures += 1
        self._end()
        self.files = self._fresh()
        self.files.restore(self.stored)
        self.taken = {one: 1 for one in self.taken if self._knows(one)}
        self.told, self.is_unsettled = set(), False
        self._make()

    def _end(self) -> None:
        self.generation.end()
        self.shell.close()

    def close(self) -> None:
        self._end()
        self._folder.cleanup()

    def may_double(self) -> bool:
        """Return whether the closed system allows another disturbance."""
        return self.doubles < self.system.doubles

    acts: ClassVar[Mapping[str, Act]] = {
        "file.arrive": Act(
            arrive, lambda world, n: not world.path(n).exists(), "the file is there"
        ),
        "file.arrive_unsaid": Act(
            arrive_unsaid,
            lambda world, n: not world.path(n).exists() and world.losses < world.system.losses,
            "no loss is left",
        ),
        "file.repeat": Act(
            repeat,
            lambda world, n: world.path(n).exists() and n not in world.said and world.may_double(),
            "the hint is with the queue",
        ),
        "source.begin": Act(begin, lambda world: not world.has_begun, "it has begun"),
        "source.give_out": Act(
            give_out, lambda world: world.asked == HEAR and world.said, "nothing is said"
        ),
        "source.name_others": Act(
            name_others, lambda world: world.asked == HEAR and world.may_double(), "no one asks"
        ),
        "source.be_silent": Act(be_silent, lambda world: world.asked == HEAR, "no one asks"),
        "source.unsettle": Act(
            unsettle,
            lambda world: world.asked == HEAR and world.may_double() and not world.is_unsettled,
            "no one asks",
        ),
        "source.refuse": Act(
            refuse, lambda world: world.asked in (HEAR, CONFIRM), "no one asks the queue"
        ),
        "source.lose_answer": Act(
            lose_answer, lambda world: world.asked == HEAR and world.said, "nothing is said"
        ),
        "source.return_hints": Act(
            return_hints, lambda world: world.given - world.told, "no hint is out"
        ),
        "source.end_look": Act(end_look, lambda world: world.asked == LOOK, "no look"),
        "source.end_listing": Act(end_listing, lambda world: world.asked == LIST, "no listing"),
        "source.forget_hints": Act(
            forget_hints, lambda world: world.asked == CONFIRM, "nothing is to be confirmed"
        ),
        "source.end_wait": Act(
            end_wait, lambda world: world._has_timer(is_rest=False), "no time runs"
        ),
        "source.end_rest": Act(
            end_rest, lambda world: world._has_timer(is_rest=True), "no time runs"
        ),
        "source.store": Act(store, lambda world: True, "always"),
        "source.go_back": Act(
            go_back, lambda world: world.failures < world.system.F, "no failure is left"
        ),
    }
