"""Limits of the waits of controls and plans for their store, and for the user's code.

Decides nothing: what follows a call that is late is a row of the machine that has asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochgate.runtime.limited import Limit

STORE_TIMEOUT_S: Final = 600.0
CALL_TIMEOUT_S: Final = 600.0


@dataclass(frozen=True)
class Waits:
    """store: for a request to the store. maker: for a call of the user's code, which makes an entry
    or checks an update.
    """

    store: Limit
    maker: Limit


USUAL: Final = Waits(
    Limit("store_timeout_s", STORE_TIMEOUT_S),
    Limit("coordinator_call_timeout_s", CALL_TIMEOUT_S),
)
