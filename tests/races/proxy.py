"""A connection that breaks at COMMIT: a proxy before Postgres that hangs up instead of passing one message on."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Literal

Lost = Literal["question", "answer"]
_COMMIT = b"COMMIT"
_SSL, _GSS = 80877103, 80877104  # what a client may ask for before its first real message


class Proxy:
    """Listens on 127.0.0.1 and passes everything on, except for the next COMMIT after `lose`.

    Of that one either the question gets lost, so that the server never sees it, or the answer, so that it took effect.
    `prepared` says whether it was a prepared statement, whose text had travelled before.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._lost: Lost | None = None
        self._for_good = False
        self._clients: list[socket.socket] = []
        self.hung_up = 0
        self.prepared = False
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, what: Lost, *, for_good: bool = False) -> None:
        """Break the connection at the next COMMIT; with `for_good`, every other one too, and take none afterwards."""
        self._lost, self._for_good = what, for_good

    def close(self) -> None:
        """Take no further connection."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self._for_good and self.hung_up:
                client.close()
                continue
            self._clients.append(client)
            server = socket.create_connection(self._server)
            threading.Thread(target=self._forward, args=(client, server), daemon=True).start()
            threading.Thread(target=_pump, args=(server, client), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        words = _Words()
        with suppress(OSError):
            while data := client.recv(65536):
                begins = words.commit_in(data)
                lost = None if begins is None else self._lost
                if lost is None:
                    server.sendall(data)
                    continue
                self._lost = None
                self.hung_up += 1
                self.prepared = words.prepared
                for each in self._clients if self._for_good else [client]:
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)  # before the server is asked: no answer can come through
                server.sendall(data if lost == "answer" else data[:begins])
                break
        # The server does what it was asked to, sees that nobody is there any more, and ends the session.
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)


class _Words:
    """The messages of a client: https://www.postgresql.org/docs/current/protocol-message-formats.html"""

    def __init__(self) -> None:
        self._rest = b""
        self._started = False
        self._commits: set[bytes] = set()  # names of prepared statements that are COMMIT
        self.prepared = False

    def commit_in(self, data: bytes) -> int | None:
        """Where in these bytes a message begins that makes the server commit; 0 if it began before them."""
        behind = len(self._rest)
        stream, at, found = self._rest + data, 0, None
        while (end := self._end(stream, at)) is not None:
            if self._is_commit(stream[at:end]) and found is None:
                found = max(0, at - behind)
            at = end
        self._rest = stream[at:]
        return found

    def _end(self, stream: bytes, at: int) -> int | None:
        head = 0 if not self._started else 1  # the first messages have a length and no type
        if len(stream) < at + head + 4:
            return None
        [length] = struct.unpack_from("!I", stream, at + head)
        end = at + head + int(length)
        return end if len(stream) >= end else None

    def _is_commit(self, message: bytes) -> bool:
        if not self._started:
            [code] = struct.unpack_from("!I", message, 4)
            self._started = code not in (_SSL, _GSS)
            return False
        kind, body = message[:1], message[5:]
        if kind == b"Q":
            self.prepared = False
            return body.rstrip(b"\0") == _COMMIT
        if kind == b"P":
            name, text, *_ = body.split(b"\0")
            (self._commits.add if text == _COMMIT else self._commits.discard)(name)
        if kind == b"B":
            _, name, *_ = body.split(b"\0")
            self.prepared = bool(name)
            return name in self._commits
        return False


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
