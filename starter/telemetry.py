"""Whether traces and metrics are wanted, and what sends them then. Nothing of OpenTelemetry is loaded where traces
are not."""

import os
from collections.abc import Mapping
from typing import Any

from temporalio.client import Interceptor
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


class BadTelemetrySetting(Exception):
    """A setting of OpenTelemetry that we can't follow; the sentence names it, and what to set."""


def traces_wanted(environ: Mapping[str, str] = os.environ) -> str:
    """Name of the exporter: `otlp` or `console`; empty: no traces.

    OpenTelemetry's own default is to send them to this machine; ours is not to, until an endpoint or an exporter is
    named. Raises BadTelemetrySetting.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    exporter = named or ("otlp" if any(environ.get(name) for name in _ENDPOINTS) else "none")
    if exporter not in {"otlp", "console", "none"}:
        raise BadTelemetrySetting(f"OTEL_TRACES_EXPORTER: {exporter!r} is not known; set otlp, console or none")
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), "http/protobuf")
    if exporter == "otlp" and protocol != "http/protobuf":
        raise BadTelemetrySetting(
            f"OTEL_EXPORTER_OTLP_PROTOCOL: {protocol!r} is not spoken here; set http/protobuf, and the endpoint of the "
            "collector's HTTP port (4318)"
        )
    return "" if exporter == "none" else exporter


def client_interceptors(environ: Mapping[str, str] = os.environ) -> list[Interceptor]:
    """For a client of Temporal: none, unless traces are wanted. Raises BadTelemetrySetting."""
    return [_traces().traced_client(exporter)] if (exporter := traces_wanted(environ)) else []


async def send_traces(environ: Mapping[str, str] = os.environ) -> None:
    """Send what has ended and was not sent yet; a collector that does not answer is waited for a moment only."""
    if traces_wanted(environ):
        await _traces().flush()


def runtime_with(metrics: str) -> Runtime | None:
    """The SDK's runtime with its metrics and ours at `http://METRICS/metrics`; None: the usual one, without any.

    Raises BadTelemetrySetting, also for a port that is taken.
    """
    if not metrics:
        return None
    try:
        return Runtime(
            telemetry=TelemetryConfig(metrics=PrometheusConfig(bind_address=metrics, counters_total_suffix=True))
        )
    except (RuntimeError, ValueError) as error:
        raise BadTelemetrySetting(
            f"LONGHAUL_METRICS: nothing can be served at {metrics!r} ({error}); set an address and a free port, as in "
            "127.0.0.1:9464"
        ) from None


def _traces() -> Any:
    from starter import traces  # noqa: PLC0415  loads OpenTelemetry's SDK, which a worker without traces never needs

    return traces
