"""A connection that breaks at COMMIT: a proxy before Postgres that hangs up instead of passing one message on."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal

Lost = Literal["question", "answer"]
_COMMIT = b"COMMIT\0"


class Proxy:
    """Listens on 127.0.0.1 and passes everything on, except for the next COMMIT after `lose`.

    Of that one either the question gets lost, so that the server never sees it, or the answer, so that it took effect.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._lost: Lost | None = None
        self.hung_up = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, what: Lost) -> None:
        """Break the connection at the next COMMIT."""
        self._lost = what

    def close(self) -> None:
        """Take no further connection."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            threading.Thread(target=_pump, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                lost = self._lost if _COMMIT in data else None
                if lost is None:
                    server.sendall(data)
                    continue
                self._lost = None
                self.hung_up += 1
                client.shutdown(socket.SHUT_RDWR)  # before the server is asked: no answer can come through
                if lost == "answer":
                    server.sendall(data)
                break
        # The server does what it was asked to, sees that nobody is there any more, and ends the session.
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)


def _pump(server: socket.socket, client: socket.socket) -> None:
    """Pass the server's answers on until it hangs up; what nobody wants to hear any more is dropped."""
    with suppress(OSError):
        while data := server.recv(65536):
            with suppress(OSError):
                client.sendall(data)
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
    client.close()
    server.close()
