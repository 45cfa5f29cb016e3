"""The errors of the wire: one type for each cause, on the driver and in the tasks alike.

Decides nothing. Each carries one sentence or two for a person: the value found, what was expected,
the likely cause and the next step. They hold a single string, so that Spark can ship them between
processes.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class WireError(EpochgateError):
    """Something went wrong between the driver and a task."""


class FrameTooLarge(WireError):
    """The peer announced a frame beyond the limit; nothing of it was read into memory."""


class FrameCorrupt(WireError):
    """A frame's bytes are not a list of messages."""


class FrameForged(WireError):
    """A frame's tag does not belong to its bytes at its place in the stream."""


class MessageTooLarge(WireError):
    """One message does not fit into a frame; raised at the sender, before anything is sent."""


class MessageNotPlain(WireError):
    """A message holds something that msgpack cannot express; raised at the sender."""


class ProtocolMismatch(WireError):
    """The other end, which answers or knocks, is not this version of epochgate's wire."""


class AuthenticationFailed(WireError):
    """The two sides do not hold the same key."""


class HandshakeTimedOut(WireError):
    """The peer did not complete the handshake in time."""


class HelloInvalid(WireError):
    """An authenticated peer did not introduce itself as it should."""


class CannotConnect(WireError):
    """No connection to the driver could be made."""


class ChannelClosed(WireError):
    """The channel to the driver has ended; the text says why."""


class CannotBind(UsageError):
    """The driver's host or port cannot be listened on."""


class WireSettingInvalid(UsageError):
    """A setting of the wire is out of its range."""
