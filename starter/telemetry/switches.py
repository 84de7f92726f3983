"""Reads whether traces, metrics and structured logs are wanted, and loads what sends them then. Nothing of
OpenTelemetry is loaded where traces are not."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from temporalio.client import Interceptor
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig

from longhaul.agent.plain.errors import missing
from longhaul.starter.telemetry.metrics import (
    BadTelemetrySetting,
    metrics_endpoint,
    sent_by_otlp,
    served_at,
    speaks_http,
)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


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
    if exporter == "otlp":
        speaks_http("TRACES", environ)
    return "" if exporter == "none" else exporter


class LogsWanted(NamedTuple):
    level: str
    structured: bool


def logs_wanted(environ: Mapping[str, str] = os.environ) -> LogsWanted:
    """By LONGHAUL_LOG: a level, `json`, or both as in `json:debug`. Plain lines begin at WARNING, JSON at INFO.

    Raises BadTelemetrySetting.
    """
    form, _, level = environ.get("LONGHAUL_LOG", "").strip().lower().rpartition(":")
    if level == "json":
        form, level = level, ""
    structured = form == "json"
    level = (level or ("info" if structured else "warning")).upper()
    if form not in {"", "json"} or level not in logging.getLevelNamesMapping():
        raise BadTelemetrySetting(
            f"LONGHAUL_LOG: {environ['LONGHAUL_LOG']!r} is not known; set debug, info, warning, error, json, or "
            "json:debug and the like"
        )
    return LogsWanted(level, structured)


def client_interceptors(environ: Mapping[str, str] = os.environ) -> list[Interceptor]:
    """For a client of Temporal: none, unless traces are wanted. Raises BadTelemetrySetting."""
    return [_traces().traced_client(exporter)] if (exporter := traces_wanted(environ)) else []


async def send_traces(environ: Mapping[str, str] = os.environ) -> None:
    """Send what has ended and was not sent yet; a collector that does not answer is waited for a moment only."""
    if traces_wanted(environ):
        await _traces().flush()


def metrics_wanted(prometheus: str, environ: Mapping[str, str] = os.environ) -> str:
    """`prometheus` where an address to serve them at is given, `otlp` where an exporter or an endpoint is named, or
    nothing. Raises BadTelemetrySetting."""
    exporter = environ.get("OTEL_METRICS_EXPORTER", "").strip().lower()
    if exporter not in {"", "otlp", "none"}:
        raise BadTelemetrySetting(f"OTEL_METRICS_EXPORTER: {exporter!r} is not known; set otlp or none")
    if prometheus and exporter == "otlp":
        raise BadTelemetrySetting(
            "LONGHAUL_METRICS and OTEL_METRICS_EXPORTER=otlp are both set, and metrics go one way; leave one out"
        )
    if prometheus:
        return "prometheus"
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return ""
    return "otlp" if exporter or metrics_endpoint(environ) else ""


def runtime_with(prometheus: str, environ: Mapping[str, str] = os.environ) -> Runtime:
    """The SDK's runtime, whose log is ours. With its metrics and ours, where they are wanted: served at
    `http://PROMETHEUS/metrics`, or sent by OTLP.

    Raises BadTelemetrySetting, also for a port that is taken.
    """
    wanted, log = metrics_wanted(prometheus, environ), _sdks_log(structured=logs_wanted(environ).structured)
    if wanted == "otlp":
        return Runtime(telemetry=replace(sent_by_otlp(environ), logging=log))
    try:
        return Runtime(telemetry=TelemetryConfig(logging=log, metrics=served_at(prometheus) if wanted else None))
    except (RuntimeError, ValueError) as error:
        raise BadTelemetrySetting(
            f"LONGHAUL_METRICS: nothing can be served at {prometheus!r} ({error}); set an address and a free port, as "
            "in 127.0.0.1:9464"
        ) from None


@cache
def runtime_of_clients() -> Runtime:
    """The SDK's runtime for clients that bring none: its own default writes warnings to stdout, among the documents
    that a program prints there. One for the process: each has threads of its own."""
    return Runtime(telemetry=TelemetryConfig(logging=_sdks_log(structured=False)))


def _sdks_log(*, structured: bool) -> LoggingConfig:
    """Of itself the SDK writes its warnings to stdout, unmasked, in the thread that hands out all workflow tasks: where
    nobody reads stdout any more, the worker stands still, idle, with all its places taken. What fills a structured
    line's fields may quote anybody."""
    to = LogForwardingConfig(
        logging.getLogger("temporalio.core"), append_target_to_name=False, append_log_fields_to_message=not structured
    )
    return LoggingConfig(filter=LoggingConfig.default.filter, forwarding=to)


def _traces() -> Any:
    try:
        # Loads OpenTelemetry's SDK, which a worker without traces never needs.
        from longhaul.starter.telemetry import traces  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing(error) from error
    return traces
