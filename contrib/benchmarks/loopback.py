"""A server process on loopback that answers everything with the same bytes: the other side of the transport benches."""

import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httptools
import trio
import trustme

REPLY = (
    b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 53\r\n\r\n"
    b'{"kind":"Status","status":"Success","code":201,"a":1}'
)


@contextmanager
def certificates() -> Iterator[Path]:
    """A folder with ``ca.pem``, ``server.pem`` and ``server.key`` for 127.0.0.1."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        authority = trustme.CA()
        server = authority.issue_cert("127.0.0.1", "localhost")
        authority.cert_pem.write_to_path(place / "ca.pem")
        server.private_key_pem.write_to_path(place / "server.key")
        for blob in server.cert_chain_pems:
            blob.write_to_path(place / "server.pem", append=True)
        yield place


@contextmanager
def server_process(module: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a module whose first line of output is its address; gives the process and that line."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


class _Requests:
    def __init__(self) -> None:
        self.finished = 0

    def on_message_complete(self) -> None:
        self.finished += 1


async def _answer(stream: trio.abc.Stream) -> None:
    requests = _Requests()
    parser = httptools.HttpRequestParser(requests)
    try:
        while data := await stream.receive_some():
            parser.feed_data(data)
            if requests.finished:
                await stream.send_all(REPLY * requests.finished)
                requests.finished = 0
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


async def _serve(folder: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_ssl_over_tcp, _answer, 0, context, host="127.0.0.1", https_compatible=True)
        (listener,) = await nursery.start(serve)
        port = listener.transport_listener.socket.getsockname()[1]
        print(f"https://127.0.0.1:{port}", flush=True)


if __name__ == "__main__":
    trio.run(_serve, Path(sys.argv[1]))
