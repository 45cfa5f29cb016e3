"""A vote on a commit in which all may die, and an echo through a graph: of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always

THERE = "there"
UNDECIDED, COMMIT, ABORT = 0, 1, 2
WAITING, YES, NO = 0, 1, 2


class Voter(Environment):
    """A participant, and what the coordinator has asked it, heard from it and told it."""

    INDEX = ("voter",)
    STATES, INITIAL = ("alive", "dead"), "alive"
    TERMINAL = ("dead",)

    system: Ballot

    votes_yes: bool = Bool(start=ANY)
    has_sent: bool = Bool()
    decision: int = Int(2)
    is_asked: bool = Bool()
    vote: int = Int(2)
    told: int = Int(2)

    send: Trigger
    refuse: Trigger
    time_out: Trigger
    decide: Trigger
    die: Trigger
    be_asked: Trigger
    be_heard: Trigger
    be_missed: Trigger
    be_told: Trigger
    veto: Trigger

    ROWS = (
        Row("send", "alive", STAY, "has_request", "put", "it votes, perhaps again"),
        Row("refuse", "alive", STAY, "may_refuse", "abort", "it has voted no"),
        Row("time_out", "alive", STAY, "is_left", "abort", "none will ask any more"),
        Row("decide", "alive", STAY, "may_decide", "follow", "it is told"),
        Row("die", "alive", "dead", None, None, "it dies"),
        Row("be_asked", ("alive", "dead"), STAY, "may_ask", "ask", "it is asked"),
        Row("be_heard", ("alive", "dead"), STAY, "may_hear", "hear", "its vote arrives"),
        Row("be_missed", "dead", STAY, "may_miss", "miss", "it has died before it voted"),
        Row("be_told", ("alive", "dead"), STAY, "may_tell", "tell", "the decision arrives"),
        Row("veto", ("alive", "dead"), STAY, "may_veto", "miss", "one has voted no"),
    )

    def has_request(self) -> bool:
        return self.is_asked

    def may_refuse(self) -> bool:
        return self.decision == UNDECIDED and self.has_sent and not self.votes_yes

    def is_left(self) -> bool:
        return (
            self.decision == UNDECIDED
            and self.system.coordinator.state == "dead"
            and not self.is_asked
        )

    def may_decide(self) -> bool:
        return self.decision == UNDECIDED and self.told != UNDECIDED

    def may_ask(self) -> bool:
        return self.system.coordinator.state == "alive" and not self.is_asked

    def may_hear(self) -> bool:
        return self.system.coordinator.is_collecting() and self.vote == WAITING and self.has_sent

    def may_miss(self) -> bool:
        return (
            self.system.coordinator.is_collecting() and self.vote == WAITING and not self.has_sent
        )

    def may_tell(self) -> bool:
        return (
            self.system.coordinator.state == "alive"
            and self.system.coordinator.decision != UNDECIDED
            and self.told == UNDECIDED
        )

    def may_veto(self) -> bool:
        return self.system.coordinator.has_all() and self.vote == NO

    def put(self) -> None:
        self.has_sent = True

    def abort(self) -> None:
        self.decision = ABORT

    def follow(self) -> None:
        self.decision = self.told

    def ask(self) -> None:
        self.is_asked = True

    def hear(self) -> None:
        self.vote = YES if self.votes_yes else NO

    def miss(self) -> None:
        self.system.coordinator.decision = ABORT

    def tell(self) -> None:
        self.told = self.system.coordinator.decision


class Coordinator(Environment):
    """Asks all, collects their votes, and decides."""

    STATES, INITIAL = ("alive", "dead"), "alive"
    TERMINAL = ("dead",)

    system: Ballot

    decision: int = Int(2)

    commit: Trigger
    die: Trigger

    ROWS = (
        Row("commit", "alive", STAY, "may_commit", "decide", "all have voted yes"),
        Row("die", "alive", "dead", None, None, "it dies"),
    )

    def is_collecting(self) -> bool:
        return (
            self.state == "alive"
            and self.decision == UNDECIDED
            and all(self.system.voter[i].is_asked for i in range(self.system.voters))
        )

    def has_all(self) -> bool:
        return (
            self.state == "alive"
            and self.decision == UNDECIDED
            and all(self.system.voter[i].vote != WAITING for i in range(self.system.voters))
        )

    def may_commit(self) -> bool:
        return (
            self.state == "alive"
            and self.decision == UNDECIDED
            and all(self.system.voter[i].vote == YES for i in range(self.system.voters))
        )

    def decide(self) -> None:
        self.decision = COMMIT


class Ballot(ClosedSystem):
    """ACP_SB: an atomic commit with a simple broadcast, and three participants."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"voter": "voters"}
    CONSTANTS: ClassVar[dict[str, int]] = {"voters": 3}
    STEPS = (
        *(
            Step("voter", trigger)
            for trigger in ("send", "refuse", "time_out", "decide", "be_asked", "be_heard")
        ),
        *(Step("voter", trigger) for trigger in ("be_missed", "be_told", "veto")),
        Step("coordinator", "commit"),
        Step("voter", "die", is_fair=False),
        Step("coordinator", "die", is_fair=False),
    )

    voters: int
    voter: list[Voter] = machines(Voter)
    coordinator: Coordinator = machines(Coordinator)

    @always("none commits while another aborts")
    def is_consistent(self) -> bool:
        return all(
            self.voter[i].decision != COMMIT or self.voter[j].decision != ABORT
            for i in range(self.voters)
            for j in range(self.voters)
        )

    @always("one commits only if all have voted yes")
    def is_agreed(self) -> bool:
        return all(
            self.voter[i].decision != COMMIT or self.voter[j].votes_yes
            for i in range(self.voters)
            for j in range(self.voters)
        )


class Hearer(Environment):
    """A node of the graph; the first has begun the wave. Of each other node an inbox has at most a
    call and an answer.
    """

    INDEX = ("node",)
    STATES, INITIAL = ("new", "hearing", "answering", "done"), "new"
    TERMINAL = ("done",)

    system: Echo
    node: int

    calls: int = Int("everyone")
    answers: int = Int("everyone")
    parent: int = Int("nodes")
    children: int = Int("everyone")
    heard: int = Int("last")

    begin: Trigger
    finish: Trigger
    end: Trigger

    ROWS = (
        Row("begin", "new", "hearing", "is_first", "call_all", "it begins the wave"),
        Row("begin", "new", "hearing", "not is_first", None, "it waits for the wave"),
        Row("finish", "hearing", "answering", "has_heard_all", None, "all others have said so"),
        Row("end", "answering", "done", "is_first", None, "the wave is back"),
        Row("end", "answering", "done", "not is_first", "answer", "it answers its parent"),
    )

    def is_first(self) -> bool:
        return self.node == 0

    def has_heard_all(self) -> bool:
        return self.heard == self.system.last

    def call_all(self) -> None:
        self.call_but(self.node)

    def call_but(self, one: int) -> None:
        for i in range(self.system.nodes):
            if i != one and i != self.node:
                self.system.hearer[i].calls += 1 << self.node

    def answer(self) -> None:
        self.system.hearer[self.parent - 1].answers += 1 << self.node

    def hear(self, other: int) -> None:
        self.heard += 1
        if self.node != 0 and self.heard == 1:
            self.parent = other + 1
            self.call_but(other)


class Voice(Environment):
    """The voice of one node in another."""

    INDEX = ("node", "other")
    STATES, INITIAL = (THERE,), THERE

    system: Echo
    node: int
    other: int

    call: Trigger
    answer: Trigger

    ROWS = (
        Row("call", THERE, STAY, "may_hear and is_called", "take_call", "a call arrives"),
        Row("answer", THERE, STAY, "may_hear and is_answered", "take_answer", "an answer arrives"),
    )

    def may_hear(self) -> bool:
        return (
            self.system.hearer[self.node].state == "hearing"
            and self.system.hearer[self.node].heard < self.system.last
        )

    def is_called(self) -> bool:
        return self.system.hearer[self.node].calls >> self.other & 1 == 1

    def is_answered(self) -> bool:
        return self.system.hearer[self.node].answers >> self.other & 1 == 1

    def take_call(self) -> None:
        self.system.hearer[self.node].calls -= 1 << self.other
        self.system.hearer[self.node].hear(self.other)

    def take_answer(self) -> None:
        self.system.hearer[self.node].answers -= 1 << self.other
        self.system.hearer[self.node].hear(self.other)
        self.system.hearer[self.node].children = (
            self.system.hearer[self.node].children | 1 << self.other
        )


class Silence(Environment):
    """Goes round where all has ended, as TLC lets a program do."""

    STATES, INITIAL = ("watching",), "watching"

    system: Echo

    stutter: Trigger

    ROWS = (Row("stutter", "watching", STAY, "is_over", None, "all has ended"),)

    def is_over(self) -> bool:
        return all(self.system.hearer[i].state == "done" for i in range(self.system.nodes))


class Echo(ClosedSystem):
    """Echo: a wave through a graph of three nodes, each beside the others."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"node": "nodes", "other": "nodes"}
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 3, "everyone": 7}
    DERIVED: ClassVar[dict[str, str]] = {"last": "nodes - 1"}
    STEPS = (
        Step("hearer", "begin"),
        Step("voice", "call"),
        Step("voice", "answer"),
        Step("hearer", "finish"),
        Step("hearer", "end"),
        Step("silence", "stutter"),
    )

    nodes: int
    last: int
    hearer: list[Hearer] = machines(Hearer)
    voice: dict[tuple[int, int], Voice] = machines(Voice)
    silence: Silence = machines(Silence)

    @always("a child has its parent, and in the end each parent its child")
    def is_tree(self) -> bool:
        return self.hearer[0].parent == 0 and all(
            (self.hearer[i].children >> j & 1 == 0 or self.hearer[j].parent == i + 1)
            and (
                self.hearer[j].state != "done"
                or self.hearer[i].state != "done"
                or self.hearer[j].parent != i + 1
                or self.hearer[i].children >> j & 1 == 1
            )
            for i in range(self.nodes)
            for j in range(self.nodes)
        )
