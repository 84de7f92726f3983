"""Where metrics go, by OpenTelemetry's variables and our own."""

import pytest

from longhaul.starter.telemetry.metrics import BadTelemetrySetting, metrics_endpoint, sent_by_otlp
from longhaul.starter.telemetry.switches import metrics_wanted

BASE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}


@pytest.mark.parametrize(
    ("prometheus", "environ", "wanted"),
    [
        ("", {}, ""),
        ("127.0.0.1:9464", {}, "prometheus"),
        ("", BASE, "otlp"),
        ("127.0.0.1:9464", BASE, "prometheus"),
        ("", {**BASE, "OTEL_METRICS_EXPORTER": "none"}, ""),
        ("", {**BASE, "OTEL_SDK_DISABLED": "true"}, ""),
        ("", {"OTEL_METRICS_EXPORTER": "otlp"}, "otlp"),
        ("", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, ""),
    ],
)
def test_metrics_are_off_until_a_place_is_named(prometheus: str, environ: dict[str, str], wanted: str) -> None:
    assert metrics_wanted(prometheus, environ) == wanted


def test_an_endpoint_of_their_own_is_taken_as_it_stands() -> None:
    own = {**BASE, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://elsewhere/metrics"}

    assert metrics_endpoint(own) == "http://elsewhere/metrics"
    assert metrics_endpoint(BASE) == "http://collector:4318/v1/metrics"


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"OTEL_METRICS_EXPORTER": "fax"}, "OTEL_METRICS_EXPORTER: 'fax' is not known"),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, "are both set"),
    ],
)
def test_what_cannot_be_followed_is_a_sentence(environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadTelemetrySetting, match=complaint):
        metrics_wanted("127.0.0.1:9464", environ)


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "'grpc' is not spoken here"),
        ({"OTEL_METRIC_EXPORT_INTERVAL": "soon"}, "'soon' is no number of milliseconds"),
        ({"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "lowmemory"}, "'lowmemory' is not known here"),
    ],
)
def test_what_the_sdk_cannot_send_is_a_sentence(environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadTelemetrySetting, match=complaint):
        sent_by_otlp({**BASE, **environ})
