"""Scenarios of the machines alone: each effect in the outbox of a step is a line of output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from textwrap import wrap
from typing import Any, ClassVar

from epochgate.fsm import Machine, Outcome, System, TransitionRefused
from epochgate.fsm.ports import Effect
from epochgate.models.job import Job

PHRASES: dict[str, Callable[..., str | None]] = {
    "attempt.task.restore": lambda s, i, a, n: f"wire {s}: restore checkpoint {n} as attempt {a}",
    "gateway.wire.event": lambda c, s, i, n, e: f"wire {s}: {e} (op{c} #{n})",
    "checkpoint.tasks.barrier": lambda s, i, n: f"wire {s}: barrier {n}",
    "checkpoint.tasks.complete": lambda s, i, n: f"wire {s}: complete {n}",
    "checkpoint.tasks.aborted": lambda s, i, n: f"wire {s}: aborted {n}",
    "lifecycle.driver.finish": lambda s, i: f"wire {s}: finish",
    "attempt.scheduler.deploy": lambda s, a: f"processes: wanted for subtask {s}, attempt {a}",
    "attempt.scheduler.starting": lambda s, a: None,
    "attempt.scheduler.release": lambda s, i: f"processes: release {i}",
    "attempt.scheduler.end": lambda s, i: f"processes: end {i}",
    "attempt.scheduler.refuse": lambda s, i: f"processes: refuse {i}",
    "attempt.scheduler.dismiss": lambda s, i: f"processes: dismiss {i}",
    "attempt.scheduler.metrics": lambda s, m: f"subtask {s}: its figures are {m}",
    "gateway.sender.confirmed": lambda c, s, n: f"op{c} to {s}: {n} confirmed",
    "gateway.sender.lost": lambda c, s, n, r: f"op{c} to {s}: {n} lost: {r}",
    "gateway.sender.held": lambda c, s, e: f"op{c} to {s}: {e} held",
    "gateway.sender.turned_away": lambda c, s, e: f"op{c} to {s}: {e} turned away",
    "holder.user.start": lambda c: f"op{c}: start",
    "holder.user.unfit": lambda c: f"op{c}: not started",
    "holder.user.rebuild": lambda c, n: f"op{c}: rebuilt from checkpoint {n}",
    "holder.user.rebuild_from_batch_snapshot": lambda c: f"op{c}: rebuilt from the batch snapshot",
    "holder.user.close": lambda c: f"op{c}: close",
    "holder.user.reset_to": lambda c, n: f"op{c}: reset to checkpoint {n}",
    "snapshot.user.checkpoint": lambda c, n: f"op{c}: asked for checkpoint {n}",
    "holder.user.complete": lambda c, n: f"op{c}: checkpoint {n} is complete",
    "holder.user.aborted": lambda c, n: f"op{c}: checkpoint {n} is aborted",
    "holder.user.ready": lambda c, s, a: f"op{c}: attempt {a} of {s} is ready",
    "holder.user.failed": lambda c, s, a, r: f"op{c}: attempt {a} of {s} has failed: {r}",
    "holder.user.subtask_reset": lambda c, s, n: f"op{c}: subtask {s} goes back to {n}",
    "holder.user.event": lambda c, s, a, e: f"op{c}: {e} from attempt {a} of {s}",
    "holder.user.reset_to_batch_snapshot": lambda c: f"op{c}: reset to the batch snapshot",
    "holder.user.cancel_batch_snapshot": lambda c: None,
    "holder.user.client_request": lambda c, r: f"op{c}: asked {r}",
    "holder.user.batch_snapshot": lambda c, r: f"op{c}: asked for a batch snapshot for {r}",
    "holder.user.refuse_early": lambda c, r: f"op{c}: {r} is refused, it has not started",
    "holder.user.refuse_broken": lambda c, r: f"op{c}: {r} is refused, it could not start",
    "holder.user.refuse_failing": lambda c, r: f"op{c}: {r} is refused, it has failed the job",
    "holder.user.refuse_periodic": lambda c, r: f"op{c}: {r} is refused, checkpoints are periodic",
    "holder.user.refuse_late": lambda c, r: f"op{c}: {r} is refused, the job is over",
    "snapshot.results.keep": lambda c, n, b: f"op{c}: its state in {n} is {b}",
    "checkpoint.driver.started": lambda n: f"checkpoint {n}: started",
    "checkpoint.driver.keep": lambda n, s, b: f"checkpoint {n}: subtask {s} gave {b}",
    "checkpoint.driver.save": lambda n: f"checkpoint {n}: to be stored",
    "checkpoint.driver.completed": lambda n: f"checkpoint {n}: completed",
    "checkpoint.driver.aborted": lambda n, r: f"checkpoint {n}: aborted: {r}",
    "checkpoint.driver.unknown": lambda n, r: f"checkpoint {n}: unknown: {r}",
    "lifecycle.driver.restart_one": lambda s, a, r: (
        f"job: {r}; how long until {s} restarts after {a}?"
    ),
    "lifecycle.driver.restart_all": lambda n, r: f"job: {r}; how long until restart {n} of all?",
    "lifecycle.driver.ending": lambda r: f"job: goes down: {r}",
    "lifecycle.driver.decided": lambda o, n: f"job: {o}, its last checkpoint is {n}",
    "lifecycle.driver.ended": lambda: "job: over",
    "committer.sink.carry": lambda n, e, t: (
        f"checkpoint {n}: carries the committables of {e}, after {t} tries"
    ),
    "committer.sink.cover": lambda n: f"commit: covers {n}",
    "committer.sink.commit": lambda n, t: f"commit: up to {n}, after {t} tries",
    "committer.sink.settled": lambda n: f"checkpoint {n}: committed",
    "committer.sink.forgone": lambda n: f"checkpoint {n}: given up",
    "post_commit.worker.work": lambda n, t: f"work: after the commit of {n}, after {t} tries",
    "post_commit.worker.record": lambda n, e: f"checkpoint {n}: says that the work of {e} is owed",
    "post_commit.worker.stalled": lambda n, r: f"work: of {n} is put off: {r}",
    "post_commit.worker.release": lambda n: f"checkpoint {n}: its committables are released",
    "request.requester.chosen": lambda n: None,
    "request.requester.refused": lambda: "requests: refused, the job has ended",
}


"""Machine, port and message of each effect -> its line, from the machine's index and the arguments;
None for what only the shell keeps account of.
"""

DEFAULTS: dict[str, str | bool] = {
    "is_fatal": False,
    "attempt.expire_start": "it took too long to start",
    "attempt.fail": "it has raised an error",
    "attempt.fault": "an event for it was lost",
    "attempt.lost": "its process is gone",
    "attempt.decline": "its snapshot has failed",
    "checkpoint.abort": "a part cannot be reached",
    "checkpoint.coordinator_failed": "a coordinator has no part",
    "checkpoint.decline": "a subtask has no part",
    "checkpoint.expire": "it took too long",
    "checkpoint.expire_save": "the store does not answer within its limit",
    "checkpoint.give_save_up": "the job ends",
    "checkpoint.refused": "the committer could not commit it",
    "checkpoint.store_failed": "the store has refused it",
    "checkpoint.store_unknown": "the store does not answer",
    "committer.expire": "the sink does not answer within its limit",
    "committer.impossible": "a file of it is gone",
    "committer.refused": "the sink has refused the commit",
    "committer.retry_later": "the sink does not answer",
    "gateway.disconnect": "the connection is cut",
    "gateway.lose": "the call has failed",
    "holder.attempt_failed": "its process is gone",
    "holder.event_malformed": "the event is malformed",
    "holder.fail_job": "the coordinator has failed the job",
    "holder.restore_failed": "the coordinator could not be restored",
    "holder.start_failed": "the coordinator could not start",
    "lifecycle.attempt_failed": "an attempt has failed",
    "lifecycle.cancel": "the user has canceled it",
    "lifecycle.expire_end": "the store does not answer",
    "lifecycle.fail_globally": "the state is wrong",
    "lifecycle.give_up": "there are no tries left",
    "post_commit.expire": "the work does not end within its limit",
    "post_commit.failed": "the work has raised an error",
    "snapshot.fail": "the coordinator has raised an error",
    "snapshot.lose": "an event was lost",
}
"""The last arguments of a trigger that a command may leave out: the reason, by trigger, and whether
it is fatal.
"""

THEN = "then"
WIDTH = 100

Fired = tuple[str, tuple[int, ...], str, tuple[Any, ...]]
"""A machine's name and index, and its trigger with the arguments."""


def value(word: str) -> int | str | bool:
    """Return what a word of a command stands for."""
    if word in ("true", "false"):
        return word == "true"
    return int(word) if word.removeprefix("-").isdigit() else word


def _values(kind: type[Machine], trigger: str, name: str) -> list[Any]:
    """The values of a parameter that a command need not give. ValueError for a number."""
    annotated = (
        getattr(kind, each).__annotations__
        for row in kind.ROWS
        if row.trigger == trigger
        for each in (*row.conditions, *row.unless, *row.actions)
    )
    of = next(each[name] for each in annotated if name in each)
    if of == "int":
        raise ValueError(f"{trigger} takes numbers as {name}: give some, as in `{name}=1,2`")
    return [False, True] if of == "bool" else [name]


def _called(
    trigger: str, some: list[tuple[Any, ...]], every: list[tuple[Any, ...]]
) -> Iterator[str]:
    """A trigger with its arguments; `*` for what all values of the last ones come to."""
    if some and len(some) == len(every) > 1:
        yield f"{trigger} *"
        return
    if some == [()]:
        yield trigger
        return
    for first in dict.fromkeys(each[0] for each in some):
        text = str(first).lower() if isinstance(first, bool) else str(first)
        yield from _called(
            f"{trigger} {text}",
            [each[1:] for each in some if each[0] == first],
            [each[1:] for each in every if each[0] == first],
        )


class MachinesWorld:
    """One `Job` system; commands fire triggers by name, or by a shorter word."""

    SYSTEM: ClassVar[type[System]] = Job

    def __init__(self, constants: dict[str, int]) -> None:
        self.lines: list[str] = []
        self._names = {machine.__name__: name for name, machine in self.SYSTEM.MACHINES.items()}
        self._constants = constants
        self.job = self._new()
        self._fired: list[Fired] = []
        self._until_here: list[Fired] = []

    def _new(self) -> Any:
        return self.SYSTEM(**self._constants)

    def do_here(self) -> None:
        """Take this for the place that `back` leads to."""
        self._until_here = [*self._fired]

    def do_back(self) -> None:
        """Go on from `here` with new machines, as if nothing had been fired since."""
        self.job, self._fired = self._new(), []
        for name, index, trigger, arguments in self._until_here:
            self._fire(self.job.instance(name, index), trigger, *arguments)
        self.lines.clear()

    def do_every(self, machine: str, *words: Any) -> None:
        """Fire each trigger of a machine from here, and print what comes of it.

        `name=1,2` gives the values of a parameter; what follows `then` are commands, with `/`
        between them, that are run from here, and after each trigger that is taken: what comes of
        them is printed where the trigger has made it different.
        """
        given = [str(word) for word in words]
        cut = given.index(THEN) if THEN in given else len(given)
        domains = {
            name: [value(each) for each in values.split(",")]
            for name, _, values in (word.partition("=") for word in given[:cut])
        }
        then = [each.strip() for each in " ".join(given[cut + 1 :]).split("/") if each]
        self.do_here()
        usual = self._done(then)
        came: dict[str, list[str]] = {}
        for trigger, every in self._every(machine, domains).items():
            found: dict[str, list[tuple[Any, ...]]] = {}
            for arguments in every:
                self.do_back()
                told = self._told_of(f"{machine}.{trigger}", arguments, usual)
                found.setdefault(told, []).append(arguments)
            for told, some in found.items():
                called = [trigger] if len(some) == len(every) else _called(trigger, some, every)
                came.setdefault(told, []).extend(called)
        self.do_back()
        last = {told: came.pop(told) for told in ("ignored", "refused") if told in came}
        said = [f"{THEN}: {' | '.join(map(': '.join, usual))}"] if then else []
        said += [f"{', '.join(called)}: {told}" for told, called in came.items()]
        said += [f"{told}: {', '.join(called)}" for told, called in last.items()]
        for each in said:
            short = each.replace(f"{machine} to ", "to ").replace(f"{machine}.", "")
            short = re.sub(r"\b(\w+) -> \1\b", r"\1", short)
            self.lines += wrap(short, WIDTH, subsequent_indent="  ", break_on_hyphens=False)

    def _every(
        self, machine: str, domains: dict[str, list[Any]]
    ) -> dict[str, list[tuple[Any, ...]]]:
        """Trigger -> all arguments that it is fired with."""
        kind = self.SYSTEM.MACHINES[machine.partition("[")[0]]
        found = {}
        for trigger in kind.triggers():
            values = [
                domains.get(name) or _values(kind, trigger, name)
                for name in kind.trigger_parameters(trigger)
            ]
            found[trigger] = [*product(*values)]
        return found

    def _told_of(
        self, trigger: str, arguments: tuple[Any, ...], usual: list[tuple[str, str]]
    ) -> str:
        """Return what comes of a trigger in one line, and of the commands that come to something
        else after it than is `usual`.
        """
        self.do_fire(trigger, *arguments)
        told, self.lines = self.lines, []
        if told == ["ignored"] or told[0].startswith("refused in"):
            return told[0].partition(" ")[0]
        after = self._done([command for command, _ in usual])
        changed = [": ".join(now) for now, else_ in zip(after, usual, strict=True) if now != else_]
        return " | ".join(["; ".join(told), *changed])

    def _done(self, commands: list[str]) -> list[tuple[str, str]]:
        """Do the commands; each with what comes of it."""
        came = []
        for command in commands:
            first, *words = command.split()
            method = getattr(self, f"do_{first}", partial(self.do_fire, first))
            method(*map(value, words))
            came.append((command, "; ".join(self.lines) or "nothing"))
            self.lines.clear()
        return came

    def do_up(self) -> None:
        """Start the job and let every subtask run; process s + 1 speaks for subtask s."""
        self._fire(self.job.lifecycle, "start")
        for holder in self.job.holder:
            self._fire(holder, "started")
        for subtask, attempt in enumerate(self.job.attempt):
            for trigger in ("connect", "initialize", "run"):
                self._fire(attempt, trigger, subtask + 1)
        self.lines[:] = [f"{len(self.job.attempt)} subtasks run"]

    def do_trigger(self) -> None:
        """Ask for a checkpoint."""
        self._fire(self.job.request, "submit")

    def do_complete(self, coordinator: int, checkpoint: int, state: str = "bytes") -> None:
        """A coordinator's future succeeds."""
        self._fire(self.job.snapshot[coordinator], "succeed", checkpoint, state)

    def do_send(self, coordinator: int, subtask: int, event: str, attempt: int = -1) -> None:
        """Send through the gateway of the current attempt, or of another."""
        number = self.job.attempt[subtask].number if attempt < 0 else attempt
        self._fire(self.job.gateway[coordinator, subtask], "send", number, event)

    def do_confirm(self, coordinator: int, subtask: int, number: int) -> None:
        """The subtask has handled events up to a number."""
        attempt = self.job.attempt[subtask]
        self._fire(attempt, "confirm", attempt.identity, coordinator, number)

    def do_ack(self, subtask: int, checkpoint: int) -> None:
        """The subtask acknowledges the barrier."""
        attempt = self.job.attempt[subtask]
        self._fire(attempt, "acknowledge", attempt.identity, checkpoint, False, f"s{subtask}")

    def do_gateway(self, coordinator: int, subtask: int) -> None:
        """Show a gateway."""
        gateway = self.job.gateway[coordinator, subtask]
        self.lines.append(f"{gateway.state}, holds {list(gateway.held)}")

    def do_fire(self, machine: str, *arguments: Any) -> None:
        """Fire `machine.trigger` or `machine[i,j].trigger` and print its outcome."""
        path, _, trigger = machine.rpartition(".")
        name, _, rest = path.partition("[")
        index = tuple(int(part) for part in rest.rstrip("]").split(",") if part)
        instance = self.job.instance(name, index)
        before = instance.state
        missing = type(instance).trigger_parameters(trigger)[len(arguments) :]
        defaults = [DEFAULTS[f"{name}.{trigger}" if p == "reason" else p] for p in missing]
        outcome = self._fire(instance, trigger, *arguments, *defaults)
        said = f"{before} -> {instance.state}" if outcome is Outcome.TAKEN else "ignored"
        if outcome is not None:
            self.lines.insert(0, said)

    def _fire(self, machine: Machine, trigger: str, *arguments: Any) -> Outcome | None:
        self._fired.append((self._names[type(machine).__name__], machine.index, trigger, arguments))
        try:
            outcome: Outcome = getattr(machine, trigger)(*arguments)
            return outcome
        except TransitionRefused as refused:
            self.lines.append(f"refused in {refused.state!r}: {refused.trigger}")
            return None
        finally:
            self._say()

    def _say(self) -> None:
        for effect in self.job.effects:
            if (line := self._told(effect)) is not None:
                self.lines.append(line)
        self.job.emitted.clear()

    def _told(self, effect: Effect) -> str | None:
        """The line for an effect; None for what only the shell keeps account of."""
        name = self._names[effect.machine]
        return PHRASES[f"{name}.{effect.port}.{effect.message}"](*effect)
