"""A collector of OpenTelemetry on this machine: takes OTLP over HTTP, and keeps what came."""

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tests.limits import SURE_SECONDS


@dataclass(frozen=True)
class Span:
    """One span as it was exported; ids as hex, times in nanoseconds."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    status: int
    """2 is an error."""
    start: int
    end: int
    attributes: dict[str, Any]


@dataclass
class Collector:
    url: str
    bodies: list[tuple[str, bytes]] = field(default_factory=list)
    """Path and content of each request."""

    @property
    def raw(self) -> bytes:
        return b"".join(body for _, body in self.bodies)

    def spans(self, name: str = "") -> list[Span]:
        """In order of their start; those of one name, when it is given."""
        found = [span for path, body in list(self.bodies) if path == "/v1/traces" for span in _spans(body)]
        return sorted((span for span in found if name in {"", span.name}), key=lambda span: span.start)

    def metric(self, name: str, **labels: str) -> float:
        """The newest value of a counter, or the sum of a histogram, over all points with these labels; 0 for none."""
        newest = dict[tuple[tuple[str, Any], ...], float]()
        for path, body in list(self.bodies):
            for point in _points(body, name) if path == "/v1/metrics" else ():
                attributes = {each.key: _plain(each.value) for each in point.attributes}
                if labels.items() <= attributes.items():
                    value = point.sum if hasattr(point, "bucket_counts") else point.as_int or point.as_double
                    newest[tuple(sorted(attributes.items()))] = value
        return sum(newest.values())

    def until(self, holds: Callable[[], Any], what: str, seconds: float = SURE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"{what} was not exported; {[span.name for span in self.spans()]}"
            time.sleep(0.05)


@contextmanager
def collecting() -> Iterator[Collector]:
    kept = Collector("")

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kept.bodies.append((self.path, body))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    kept.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _points(body: bytes, name: str) -> Iterator[Any]:
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if metric.name == name:
                    yield from (metric.histogram if metric.HasField("histogram") else metric.sum).data_points


def _spans(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    kind=span.kind,
                    status=span.status.code,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    attributes={each.key: _plain(each.value) for each in span.attributes},
                )


def _plain(value: AnyValue) -> Any:
    match value.WhichOneof("value"):
        case "array_value":
            return [_plain(each) for each in value.array_value.values]
        case None:
            return None
        case name:
            return getattr(value, name)
