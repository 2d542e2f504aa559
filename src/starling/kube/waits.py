"""How long to wait between tries of something at an API server."""

from starling.aio import Backoff, first_of
from starling.kube.errors import KubeError, Unreachable
from starling.kube.transport import Transport

__all__ = ["Waits"]


class Waits:
    """The waits of one who tries again: longer each time, and as long as the server asks. Mutable.

    Who waits for a server that is away is called when it answers anyone; once, for it may be only us whom it doesn't
    answer. One that was away and is starting refuses for a moment what it will allow: then waits begin anew, once too.
    """

    def __init__(self, transport: Transport, backoff: Backoff) -> None:
        self._transport = transport
        self._backoff = backoff
        self._lost = False
        self._called = False
        self._renewed = False

    def reset(self) -> None:
        """Begin anew: it went well."""
        self._backoff.reset()
        self._lost = self._called = self._renewed = False

    async def after(self, error: KubeError | None = None) -> None:
        """Wait before the next try, after this went wrong."""
        lost = isinstance(error, Unreachable)
        if self._lost and not lost and not self._renewed:
            self._backoff.reset()
            self._renewed = True
        self._lost = lost
        asked = (error.retry_after if error is not None else None) or 0.0
        time = self._transport.clock.sleep(max(self._backoff.next(), asked))
        if lost and self._transport.away and not self._called:
            self._called = await first_of(self._transport.back(), time) == 0
        else:
            await time
