"""HTTP/1.1 as uvicorn speaks it, but who sends no request is not waited for, and what is no HTTP gets our error."""

from __future__ import annotations

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ncs.serve.http.refusals import Refusal

HEAD_SECONDS = 15
"""What the first line and the headers of a request may take."""


class Protocol(H11Protocol):
    """One connection. h11 rather than httptools: it bounds the head of a request."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio does so only for sockets that name their protocol: else a body may wait 40 ms for its head's receipt
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._late)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        idle = self.conn.our_state is h11.IDLE
        if not idle and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        elif idle and self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """As every error: one JSON shape."""
        body = Refusal(400, "no_http", "this is no HTTP request, or its head is too large", "send HTTP/1.1").body()
        headers = {
            "content-type": "application/json", "content-length": str(len(body)), "connection": "close",
            "x-content-type-options": "nosniff",
        }  # fmt: skip
        head = h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request")
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
