"""Responds like Prometheus, with the same load of three nodes at every time: for examples/cluster.yaml."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

CPU = {"busy:9100": 0.85, "half:9100": 0.5, "idle:9100": 0.1}
MEMORY = {"busy:9100": 0.3, "half:9100": 0.3, "idle:9100": 0.3}


class Api(BaseHTTPRequestHandler):
    """``/api/v1/query``."""

    def do_GET(self) -> None:
        values = MEMORY if "memory" in self.path else CPU
        series = [{"metric": {"instance": node}, "value": [0, str(load)]} for node, load in values.items()]
        body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


HTTPServer(("127.0.0.1", 9091), Api).serve_forever()
