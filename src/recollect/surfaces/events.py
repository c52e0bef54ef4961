"""What happens in a server, told to whoever listens: progress of a sync or a re-embed, changed notes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

Event = dict[str, Any]
_WAITING = 100
STILL_HERE_S = 15.0


class Events:
    """Told from any thread, heard in the server's loop; a listener that falls behind loses the oldest."""

    def __init__(self) -> None:
        self._listeners: dict[asyncio.Queue[Event | None], asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._closed = False

    def tell(self, event: str, **facts: Any) -> None:
        """Something happened."""
        self._send({"event": event, **facts})

    def close(self) -> None:
        """Ends every listener."""
        self._closed = True
        self._send(None)

    def _send(self, event: Event | None) -> None:
        with self._lock:
            listeners = list(self._listeners.items())
        for queue, loop in listeners:
            loop.call_soon_threadsafe(_put, queue, event)

    async def listen(self) -> AsyncIterator[Event]:
        """Events from now on; an empty one now and then, so that a line that died is noticed."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_WAITING)
        with self._lock:
            self._listeners[queue] = asyncio.get_running_loop()
        try:
            while not self._closed:
                try:
                    event = await asyncio.wait_for(queue.get(), STILL_HERE_S)
                except TimeoutError:
                    event = {}
                if event is None:
                    return
                yield event
        finally:
            with self._lock:
                del self._listeners[queue]


def _put(queue: asyncio.Queue[Event | None], event: Event | None) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(event)
