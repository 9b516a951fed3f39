"""An S3 API on loopback: as much of it as obstore and delta-rs ask for, conditional put included.

Not moto: it wants an older python-dateutil than everything else here, and forty packages more.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import md5
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


class Stored(NamedTuple):
    """One object."""

    data: bytes
    at: float

    @property
    def etag(self) -> str:
        return f'"{md5(self.data, usedforsecurity=False).hexdigest()}"'


class S3(ThreadingHTTPServer):
    """Objects in memory by `bucket/key`. Every change is made under one lock, so a put-if-absent has one winner."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, Stored] = {}
        self.lock = threading.Lock()
        self.conditional = {"won": 0, "lost": 0}

    @property
    def environment(self) -> dict[str, str]:
        """What tells obstore and delta-rs to come here."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_address[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def s3_server() -> Iterator[S3]:
    """A store that answers for the length of a `with` block."""
    server = S3()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: S3

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).strip("/")

    @property
    def query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[-1] for name, values in found.items()}

    def do_PUT(self) -> None:
        data = self._body()
        with self.server.lock:
            if self.headers.get("If-None-Match") == "*":
                if self.key in self.server.objects:
                    self.server.conditional["lost"] += 1
                    self._refuse(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")
                    return
                self.server.conditional["won"] += 1
            stored = self.server.objects[self.key] = Stored(data, time())
        self._answer(HTTPStatus.OK, b"", ETag=stored.etag)

    def do_HEAD(self) -> None:
        self._get(with_body=False)

    def do_GET(self) -> None:
        if "list-type" in self.query:
            self._list()
        else:
            self._get(with_body=True)

    def do_DELETE(self) -> None:
        with self.server.lock:
            self.server.objects.pop(self.key, None)
        self._answer(HTTPStatus.NO_CONTENT, b"")

    def do_POST(self) -> None:
        """Delete several at once."""
        bucket, body = self.key, ElementTree.fromstring(self._body())
        keys = [node.text or "" for node in body.iter() if node.tag.rpartition("}")[2] == "Key"]
        with self.server.lock:
            for key in keys:
                self.server.objects.pop(f"{bucket}/{key}", None)
        gone = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self._xml("DeleteResult", gone)

    def _get(self, *, with_body: bool) -> None:
        stored = self.server.objects.get(self.key)
        if stored is None:
            self._refuse(HTTPStatus.NOT_FOUND, "NoSuchKey")
            return
        data, status, extra = stored.data, HTTPStatus.OK, {}
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            size = len(data)
            start = int(first) if first else max(0, size - int(last))
            end = min(size, int(last) + 1) if first and last else size
            data, status = data[start:end], HTTPStatus.PARTIAL_CONTENT
            extra = {"Content-Range": f"bytes {start}-{end - 1}/{size}"}
        moment = formatdate(stored.at, usegmt=True)
        self._answer(status, data, with_body=with_body, ETag=stored.etag, **{"Last-Modified": moment}, **extra)

    def _list(self) -> None:
        asked, bucket = self.query, self.key.partition("/")[0]
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token") or asked.get("start-after") or ""
        most = int(asked.get("max-keys", "1000"))
        with self.server.lock:
            known = {name.partition("/")[2]: stored for name, stored in self.server.objects.items()
                     if name.startswith(f"{bucket}/")}  # fmt: skip
        keys = [key for key in sorted(known) if key.startswith(prefix) and key > after]
        page, rest = keys[:most], keys[most:]
        folders: dict[str, None] = {}
        told = []
        for key in page:
            deeper, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                folders[prefix + deeper + delimiter] = None
                continue
            stored = known[key]
            told.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(stored.data)}</Size><ETag>{escape(stored.etag)}</ETag>"
                f"<LastModified>{_iso(stored.at)}</LastModified></Contents>"
            )
        told += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders]
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        count = f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(bool(rest)).lower()}</IsTruncated>"
        head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
        self._xml("ListBucketResult", f"{head}{count}{more}{''.join(told)}")

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def _xml(self, name: str, inner: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        text = f'<?xml version="1.0" encoding="UTF-8"?><{name} xmlns="{_NAMESPACE}">{inner}</{name}>'
        self._answer(status, text.encode(), **{"Content-Type": "application/xml"})

    def _refuse(self, status: HTTPStatus, code: str) -> None:
        if self.command == "HEAD":
            self._answer(status, b"")
            return
        text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
        self._answer(status, text.encode(), **{"Content-Type": "application/xml"})

    def _answer(self, status: HTTPStatus, data: bytes, *, with_body: bool = True, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if with_body:
            self.wfile.write(data)


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
