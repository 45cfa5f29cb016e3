"""The mutual proof of one shared key, before anything that a peer sends is parsed.

    driver                                              task
      | -- greeting: magic, version, driver nonce -------> |     40 bytes
      | <-- answer: magic, version, task nonce, proof ---- |     72 bytes
      | -- verdict: proof, or 32 zero bytes: refused ----> |     32 bytes

A proof is HMAC-SHA256 under the key over a label for the direction, magic and version, and both
nonces, so it serves neither in the other direction nor on another connection. The task proves
itself first: who does not hold the key learns nothing computed from it. Both sides then derive one
key per direction for the tags of `sealing`.

Decides who is let in. Pure bytes in, bytes out: reading, writing and the time limit belong to
`server` (on its thread) and `client` (on the thread that connects).
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final, NamedTuple

from epochgate.spark.wire.errors import AuthenticationFailed, ProtocolMismatch, WireSettingInvalid

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 32
PROOF_BYTES: Final = 32
NAME: Final = b"EGWIRE"
VERSION: Final = 1
MAGIC: Final = NAME + VERSION.to_bytes(2, "big")
GREETING_BYTES: Final = len(MAGIC) + NONCE_BYTES
ANSWER_BYTES: Final = len(MAGIC) + NONCE_BYTES + PROOF_BYTES
VERDICT_BYTES: Final = PROOF_BYTES
REFUSED: Final = bytes(PROOF_BYTES)

_WHAT_TO_CHECK = (
    "Each run makes its own key and ships it to its tasks: check that this task belongs to this "
    "run, and that the address is not one of an earlier run or of another job."
)


class SessionKeys(NamedTuple):
    """One key for the frames of each direction, known to these two peers on this connection."""

    from_driver: bytes
    from_task: bytes


def new_key() -> bytes:
    """A fresh random key of 32 bytes for one run."""
    return secrets.token_bytes(KEY_BYTES)


def checked_key(key: bytes) -> bytes:
    """`key` itself, or `WireSettingInvalid` when it is not 32 bytes; its value is never shown."""
    if type(key) is not bytes or len(key) != KEY_BYTES:
        raise WireSettingInvalid(
            f"the wire's key is {type(key).__name__} of length {len(key)}; it must be {KEY_BYTES} "
            "random bytes, as new_key() makes them."
        )
    return key


class DriverHandshake:
    """The driver's side for one connection. Send `greeting`, then give `receive` what arrives."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._received = bytearray()
        self.greeting = MAGIC + self._nonce
        self.verdict = REFUSED
        self.session: SessionKeys | None = None

    def receive(self, data: bytes | memoryview) -> bytes:
        """Take arriving bytes; returns those after the handshake, which are meaningless while
        `session` is None.

        Once `session` is set, or `AuthenticationFailed` raised, `verdict` is what to send. Raises
        `ProtocolMismatch` at the first byte that is not of this protocol: nothing is to be answered
        then.
        """
        self._received += data
        check_magic(bytes(self._received[: len(MAGIC)]), "the peer")
        if len(self._received) < ANSWER_BYTES:
            return b""
        nonce = bytes(self._received[len(MAGIC) : len(MAGIC) + NONCE_BYTES])
        proof = bytes(self._received[len(MAGIC) + NONCE_BYTES : ANSWER_BYTES])
        remainder = bytes(self._received[ANSWER_BYTES:])
        self._received.clear()
        if not hmac.compare_digest(proof, _prove(self._key, b"task proves", self._nonce, nonce)):
            raise AuthenticationFailed(f"the peer does not hold this run's key. {_WHAT_TO_CHECK}")
        self.verdict = _prove(self._key, b"driver proves", self._nonce, nonce)
        self.session = _session_keys(self._key, self._nonce, nonce)
        return remainder


class TaskHandshake:
    """The task's side for one connection: `answer` the greeting, then `accept` the verdict."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._driver_nonce = b""

    def answer(self, greeting: bytes) -> bytes:
        """The 72 bytes to send back; raises `ProtocolMismatch`."""
        check_magic(greeting[: len(MAGIC)], "what listens there")
        self._driver_nonce = greeting[len(MAGIC) : GREETING_BYTES]
        return (
            MAGIC + self._nonce + _prove(self._key, b"task proves", self._driver_nonce, self._nonce)
        )

    def accept(self, verdict: bytes) -> SessionKeys:
        """The session's keys; raises `AuthenticationFailed` when one side lacks the key."""
        if hmac.compare_digest(verdict, REFUSED):
            raise AuthenticationFailed(f"the driver refused this task's key. {_WHAT_TO_CHECK}")
        expected = _prove(self._key, b"driver proves", self._driver_nonce, self._nonce)
        if not hmac.compare_digest(verdict, expected):
            raise AuthenticationFailed(
                f"what listens there does not hold this run's key. {_WHAT_TO_CHECK}"
            )
        return _session_keys(self._key, self._driver_nonce, self._nonce)


def check_magic(found: bytes, who: str) -> None:
    """Raise `ProtocolMismatch` unless `found` is the magic, or the beginning of it."""
    if MAGIC.startswith(found):
        return
    if found.startswith(NAME) and len(found) == len(MAGIC):
        version = int.from_bytes(found[len(NAME) :], "big")
        raise ProtocolMismatch(
            f"{who} speaks version {version} of epochgate's wire, and this side version {VERSION}. "
            "Give the driver and the executors the same version of epochgate."
        )
    raise ProtocolMismatch(
        f"{who} does not speak epochgate's wire: it began with {found!r}. "
        "Probably another program uses this port, or a scanner knocked."
    )


def _prove(key: bytes, label: bytes, driver_nonce: bytes, task_nonce: bytes) -> bytes:
    # Each part has a fixed length but the label, which therefore stands last.
    return hmac.digest(key, MAGIC + driver_nonce + task_nonce + label, "sha256")


def _session_keys(key: bytes, driver_nonce: bytes, task_nonce: bytes) -> SessionKeys:
    return SessionKeys(
        from_driver=_prove(key, b"frames from driver", driver_nonce, task_nonce),
        from_task=_prove(key, b"frames from task", driver_nonce, task_nonce),
    )
