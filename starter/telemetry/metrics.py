"""Sends metrics where OpenTelemetry's own variables say: the SDK of Temporal counts and sends them, ours among them."""

import os
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import unquote

from temporalio.runtime import (
    OpenTelemetryConfig,
    OpenTelemetryMetricTemporality,
    PrometheusConfig,
    TelemetryConfig,
)

from longhaul.agent.plain.errors import BadSetup

EVERY_MILLISECONDS = 60_000
"""OpenTelemetry's own default."""

_CALL_TOKENS = tuple(float(4**power) for power in range(14))
_CALL_SECONDS = tuple(0.01 * 2**power for power in range(14))
"""Of calls of models, as OpenTelemetry's conventions have them."""

BUCKETS: Mapping[str, tuple[float, ...]] = {
    "longhaul_wait_seconds": (1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400, 604_800),
    "longhaul_reply_seconds": (0.5, 1, 2, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400),
    "longhaul_budget_share": (0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1),
    "longhaul_cost": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
    "gen_ai.client.token.usage": _CALL_TOKENS,
    "gen_ai_client_token_usage": _CALL_TOKENS,
    "gen_ai.client.operation.duration": _CALL_SECONDS,
    "gen_ai_client_operation_duration_seconds": _CALL_SECONDS,
}
"""The SDK's own are for milliseconds of small things."""


class BadTelemetrySetting(BadSetup):
    """A setting of logs, metrics or traces that we can't follow; the sentence names it, and what to set."""


def served_at(address: str) -> PrometheusConfig:
    return PrometheusConfig(bind_address=address, counters_total_suffix=True, histogram_bucket_overrides=BUCKETS)


def metrics_endpoint(environ: Mapping[str, str] = os.environ) -> str:
    """Where to send them; empty when no endpoint is named."""
    if own := environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "").strip():
        return own
    base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    return f"{base.rstrip('/')}/v1/metrics" if base else ""


def sent_by_otlp(environ: Mapping[str, str] = os.environ) -> TelemetryConfig:
    """Raises BadTelemetrySetting."""
    speaks_http("METRICS", environ)
    # As `name=value,name=value`, URL-encoded.
    own = environ.get("OTEL_EXPORTER_OTLP_METRICS_HEADERS") or environ.get("OTEL_EXPORTER_OTLP_HEADERS") or ""
    pairs = (part.partition("=") for part in own.split(",") if "=" in part)
    headers = {unquote(name.strip()).lower(): unquote(value.strip()) for name, _, value in pairs}
    metrics = OpenTelemetryConfig(
        url=metrics_endpoint(environ) or "http://127.0.0.1:4318/v1/metrics",
        headers=headers,
        metric_periodicity=timedelta(milliseconds=_interval(environ)),
        metric_temporality=_temporality(environ),
        http=True,
        histogram_bucket_overrides=BUCKETS,
    )
    name = environ.get("OTEL_SERVICE_NAME", "").strip() or "longhaul"
    return TelemetryConfig(metrics=metrics, global_tags={"service_name": name}, attach_service_name=False)


def speaks_http(signal: str, environ: Mapping[str, str]) -> None:
    """Raises BadTelemetrySetting for a protocol that is not spoken here. `signal`: TRACES or METRICS."""
    names = (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((environ[name] for name in names if environ.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        raise BadTelemetrySetting(
            f"OTEL_EXPORTER_OTLP_PROTOCOL: {protocol!r} is not spoken here; set http/protobuf, and the endpoint of the "
            "collector's HTTP port (4318)"
        )


def _interval(environ: Mapping[str, str]) -> int:
    given = environ.get("OTEL_METRIC_EXPORT_INTERVAL", "").strip()
    if given and not (given.isdecimal() and int(given) > 0):
        raise BadTelemetrySetting(f"OTEL_METRIC_EXPORT_INTERVAL: {given!r} is no number of milliseconds above 0")
    return int(given or EVERY_MILLISECONDS)


def _temporality(environ: Mapping[str, str]) -> OpenTelemetryMetricTemporality:
    wanted = environ.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative").strip().lower()
    match wanted:
        case "cumulative" | "":
            return OpenTelemetryMetricTemporality.CUMULATIVE
        case "delta":
            return OpenTelemetryMetricTemporality.DELTA
        case _:
            raise BadTelemetrySetting(
                f"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: {wanted!r} is not known here; set cumulative or "
                "delta"
            )
