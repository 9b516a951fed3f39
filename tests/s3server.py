"""An S3 API on loopback: as much of it as obstore, delta-rs and Hadoop's S3A ask for, conditional put included.

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
from uuid import uuid4
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
        self.uploads: dict[str, dict[int, bytes]] = {}

    @property
    def hadoop(self) -> dict[str, str]:
        """What tells Spark's S3A to come here."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.environment["AWS_ENDPOINT_URL"],
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "test",
            "spark.hadoop.fs.s3a.secret.key": "test",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        }

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
        """Bucket and name. A name that ends in a slash is another one: Hadoop makes folders of such objects."""
        return unquote(urlsplit(self.path).path).lstrip("/")

    @property
    def query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[-1] for name, values in found.items()}

    def do_PUT(self) -> None:
        data = self._body()
        if "uploadId" in self.query:
            self.server.uploads[self.query["uploadId"]][int(self.query["partNumber"])] = data
            self._answer(HTTPStatus.OK, b"", ETag=Stored(data, 0).etag)
        elif source := self.headers.get("x-amz-copy-source"):
            self._copy(unquote(source).lstrip("/"))
        elif (stored := self._store(data)) is not None:
            self._answer(HTTPStatus.OK, b"", ETag=stored.etag)

    def _store(self, data: bytes) -> Stored | None:
        with self.server.lock:
            if self.headers.get("If-None-Match") == "*":
                if self.key in self.server.objects:
                    self.server.conditional["lost"] += 1
                    self._refuse(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed")
                    return None
                self.server.conditional["won"] += 1
            stored = self.server.objects[self.key] = Stored(data, time())
        return stored

    def _copy(self, source: str) -> None:
        with self.server.lock:
            if (found := self.server.objects.get(source)) is not None:
                self.server.objects[self.key] = Stored(found.data, time())
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "NoSuchKey")
            return
        told = f"<ETag>{escape(found.etag)}</ETag><LastModified>{_iso(time())}</LastModified>"
        self._xml("CopyObjectResult", told)

    def do_HEAD(self) -> None:
        self._get(with_body=False)

    def do_GET(self) -> None:
        if "list-type" in self.query:
            self._list()
        elif "uploads" in self.query:
            self._xml("ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>")
        else:
            self._get(with_body=True)

    def do_DELETE(self) -> None:
        if "uploadId" in self.query:
            self.server.uploads.pop(self.query["uploadId"], None)
        else:
            with self.server.lock:
                self.server.objects.pop(self.key, None)
        self._answer(HTTPStatus.NO_CONTENT, b"")

    def do_POST(self) -> None:
        """Delete several at once, or begin or end an upload in parts."""
        body = self._body()
        bucket, _, key = self.key.partition("/")
        if "uploads" in self.query:
            upload = uuid4().hex
            self.server.uploads[upload] = {}
            told = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{upload}</UploadId>"
            self._xml("InitiateMultipartUploadResult", told)
        elif "uploadId" in self.query:
            parts = self.server.uploads.pop(self.query["uploadId"])
            stored = self._store(b"".join(parts[number] for number in sorted(parts)))
            if stored is not None:
                told = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><ETag>{escape(stored.etag)}</ETag>"
                self._xml("CompleteMultipartUploadResult", told)
        else:
            nodes = ElementTree.fromstring(body).iter()
            keys = [node.text or "" for node in nodes if node.tag.rpartition("}")[2] == "Key"]
            with self.server.lock:
                for each in keys:
                    self.server.objects.pop(f"{bucket}/{each}", None)
            gone = "".join(f"<Deleted><Key>{escape(each)}</Key></Deleted>" for each in keys)
            self._xml("DeleteResult", gone)

    def _get(self, *, with_body: bool) -> None:
        if "/" not in self.key.rstrip("/"):  # a bucket: every one is there
            self._answer(HTTPStatus.OK, b"", with_body=with_body)
            return
        stored = self.server.objects.get(self.key)
        if stored is None:
            self._refuse(HTTPStatus.NOT_FOUND, "NoSuchKey")
            return
        data, status, extra = stored.data, HTTPStatus.OK, {}
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            size = len(data)
            if first and int(first) >= size:
                self._refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "InvalidRange")
                return
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
        # A folder is one entry, however many keys it has, and comes once, on whichever page.
        entries: dict[str, Stored | None] = {}
        for key in sorted(known):
            deeper, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            entry = prefix + deeper + delimiter if found else key
            if key.startswith(prefix) and entry > after:
                entries[entry] = None if found else known[key]
        page, rest = list(entries)[:most], list(entries)[most:]
        told = []
        for entry in page:
            if (stored := entries[entry]) is None:
                told.append(f"<CommonPrefixes><Prefix>{escape(entry)}</Prefix></CommonPrefixes>")
                continue
            told.append(
                f"<Contents><Key>{escape(entry)}</Key><Size>{len(stored.data)}</Size><ETag>{escape(stored.etag)}</ETag>"
                f"<LastModified>{_iso(stored.at)}</LastModified></Contents>"
            )
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        count = f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(bool(rest)).lower()}</IsTruncated>"
        head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
        self._xml("ListBucketResult", f"{head}{count}{more}{''.join(told)}")

    def _body(self) -> bytes:
        data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self.headers.get("x-amz-content-sha256", "").startswith("STREAMING-"):
            return data
        # Amazon's own SDK sends chunks, each with its length and signature in front, and checksums after the last.
        found, rest = b"", data
        while size := int(rest[: (end := rest.index(b"\r\n"))].split(b";")[0], 16):
            found += rest[end + 2 : end + 2 + size]
            rest = rest[end + 2 + size + 2 :]
        return found

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
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if with_body:
            self.wfile.write(data)


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
