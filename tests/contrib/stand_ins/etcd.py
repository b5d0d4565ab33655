"""Stands in for etcd: keeps one document in its data folder, and gives it to the API server that stands beside it."""

import argparse
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in ("--listen-peer-urls", "--initial-advertise-peer-urls", "--initial-cluster", "--advertise-client-urls"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--unsafe-no-fsync", action="store_true")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--listen-client-urls", required=True)
    given = parser.parse_args()
    given.data_dir.mkdir(exist_ok=True)
    document = given.data_dir / "objects.json"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"{}" if self.path == "/health" else document.read_bytes() if document.exists() else b"[]"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            document.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    HTTPServer(("127.0.0.1", urlsplit(given.listen_client_urls).port or 0), Handler).serve_forever()


main()
