"""The authenticated wire between the driver and the tasks: it moves messages and decides nothing
about them.
"""

from epochgate.spark.wire.client import TaskChannel
from epochgate.spark.wire.connection import Connection, Listener
from epochgate.spark.wire.detector import DETECTION, Detection, PhiDetector
from epochgate.spark.wire.errors import (
    AuthenticationFailed,
    CannotBind,
    CannotConnect,
    ChannelClosed,
    FrameCorrupt,
    FrameForged,
    FrameTooLarge,
    HandshakeTimedOut,
    HelloInvalid,
    MessageNotPlain,
    MessageTooLarge,
    ProtocolMismatch,
    WireError,
    WireSettingInvalid,
)
from epochgate.spark.wire.frames import FRAME_BYTES_MAX, MESSAGE_BYTES_MAX
from epochgate.spark.wire.handshake import new_key
from epochgate.spark.wire.server import TaskServer

__all__ = [
    "DETECTION",
    "FRAME_BYTES_MAX",
    "MESSAGE_BYTES_MAX",
    "AuthenticationFailed",
    "CannotBind",
    "CannotConnect",
    "ChannelClosed",
    "Connection",
    "Detection",
    "FrameCorrupt",
    "FrameForged",
    "FrameTooLarge",
    "HandshakeTimedOut",
    "HelloInvalid",
    "Listener",
    "MessageNotPlain",
    "MessageTooLarge",
    "PhiDetector",
    "ProtocolMismatch",
    "TaskChannel",
    "TaskServer",
    "WireError",
    "WireSettingInvalid",
    "new_key",
]
