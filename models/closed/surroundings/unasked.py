"""The coordinator's answer to clients in a closed system without clients: nothing.

The holder hands requests on or refuses them, and where no client asks, neither call is ever made.
The systems with clients have a coordinator that overrides them (`clients.AskedUser`).
"""

from __future__ import annotations

from epochgate.fsm.closed import Environment


class Unasked(Environment):
    """A user's coordinator that no client asks: the part of port `user` of its holder."""

    def cancel_batch_snapshot(self) -> None:
        """No snapshot without a checkpoint is under way: no client asks for one."""

    def client_request(self, request: int) -> None:
        pass

    def batch_snapshot(self, request: int) -> None:
        pass

    def refuse_early(self, request: int) -> None:
        pass

    def refuse_broken(self, request: int) -> None:
        pass

    def refuse_failing(self, request: int) -> None:
        pass

    def refuse_periodic(self, request: int) -> None:
        pass

    def refuse_late(self, request: int) -> None:
        pass
