"""The alternating bit with all the initial states that TLC's model of it has."""

from __future__ import annotations

from epochgate.fsm import ANY, Int, machines
from epochgate.fsm.closed import always, implements, initially, leads_to
from examples.alternating_bit import AlternatingBit, Handover, Receiver, Sender, Transfer


class AnySender(Sender):
    """Begins with each bit and value."""

    bit: int = Int(1, ANY)
    value: int = Int("value_max", ANY)


class AnyReceiver(Receiver):
    """Begins with each bit and value."""

    bit: int = Int(1, ANY)
    value: int = Int("value_max", ANY)


class AnyTransfer(Transfer):
    """Begins with each bit and each two values."""

    bit: int = Int(1, ANY)
    value: int = Int("value_max", ANY)
    received: int = Int("value_max", ANY)


class AnyHandover(Handover):
    """ABCorrectness: 20 distinct states."""

    transfer: Transfer = machines(AnyTransfer)


class AnyBeginning(AlternatingBit):
    """MCAlternatingBit: 240 distinct states."""

    sender: Sender = machines(AnySender)
    receiver: Receiver = machines(AnyReceiver)

    @always("only what was sent is there once a value was sent")
    def has_arrived(self) -> bool:
        return True

    @initially("the bits agree")
    def is_agreed(self) -> bool:
        return self.sender.bit == self.receiver.bit

    @leads_to("what is sent is received", then="is_received")
    def is_sent(self) -> bool:
        return self.sender.state == "waiting" and self.sender.value == 1

    def is_received(self) -> bool:
        return self.receiver.value == 1

    @implements("each value gets over once, and in order", AnyHandover, choices="choices")
    def as_handover(self, specification: Handover) -> None:
        super().as_handover(specification)
