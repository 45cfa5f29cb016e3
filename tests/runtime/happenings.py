"""Everything that can happen to a simulated job, in an order and a measure drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable

from epochgate.runtime.testing.simulation import SimulatedJob


def let_anything_happen(
    job: SimulatedJob, seed: int, moves: int, *client: Callable[[], None]
) -> None:
    """Make `moves` moves of messages, processes, time, and of the client by any of its calls; a
    few of them are faults.
    """
    choice = random.Random(seed)
    faults, eagerness = choice.choice([0.002, 0.005, 0.01]), choice.choice([0.3, 3.0])
    weights = {"step": 16, "drain": 8, "blocking": 2, "advance": 0.2, "client": eagerness}
    for _ in range(moves):
        if job.is_over:
            return
        if choice.random() < faults:
            let_something_fail(job, choice)
        kind = choice.choices([*weights], [*weights.values()])[0]
        if kind == "step" and (steps := job.steps()):
            job.step(choice.choice(steps))
        elif kind == "drain":
            job.drain()
        elif kind == "blocking":
            job.run_blocking()
        elif kind == "advance":
            job.advance()
        elif kind == "client" and client:
            choice.choice(client)()


def let_something_fail(job: SimulatedJob, choice: random.Random) -> None:
    kind = choice.choice(["kill", "kill", "cut", "lose", "late", "decline", "all", "checkpoint"])
    alive = [i for i, process in job.transport.processes.items() if process.is_alive]
    if kind == "kill" and alive:
        job.transport.kill(choice.choice(alive))
    elif kind == "cut" and alive:
        job.transport.cut(choice.choice(alive))
    elif kind == "lose" and job.master.configuration.checkpoint_interval_s is not None:
        # Without a later event or checkpoint the loss would not be noticed.
        job.faults.doom("event", "lost")
    elif kind == "late":
        job.faults.doom("acknowledge", choice.choice(["late", "repeated", "lost"]))
    elif kind == "decline":
        job.faults.doom("acknowledge", "declined")
    elif kind == "all":
        job.master.queue.post(job.master.job.holder[0].fail_job, "its state is wrong", False)
    elif kind == "checkpoint":
        job.master.request_checkpoint()
