"""Traces of this process: where spans go, and those that a client makes of what it asks of sessions."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    StartWorkflowUpdateInput,
    StartWorkflowUpdateWithStartInput,
    WorkflowUpdateHandle,
)

from longhaul.agent.plain.ids import HEADER, names_in

SCOPE = "longhaul"
FLUSH_MILLISECONDS = 3_000


def traced_client(exporter: str) -> Interceptor:
    """The spans of a client; the process gets a tracer provider when it has none of its own."""
    provide(exporter)
    return TracedClient()


def provide(exporter: str) -> None:
    """See to it that there is a tracer provider. One that the program has set up itself is used as it is."""
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    # Attributes of the resource are read from OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, which win.
    found = Resource.create()
    attributes = {key: value for key, value in found.attributes.items() if not str(value).startswith("unknown_service")}
    provider = TracerProvider(resource=Resource({"service.name": SCOPE}).merge(Resource(attributes, found.schema_url)))
    if exporter == "console":
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  not for a console

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


async def flush() -> None:
    """Off the event loop: a collector that is away would hold it up."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        await asyncio.to_thread(provider.force_flush, FLUSH_MILLISECONDS)


class TracedClient(Interceptor):
    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002  the SDK's name
        return _Outbound(next)


class _Outbound(OutboundInterceptor):
    async def start_workflow_update(self, input: StartWorkflowUpdateInput) -> WorkflowUpdateHandle[Any]:  # noqa: A002  the SDK's name
        with _request_span(input.id, input.update):
            input.headers = _with_context(input.headers)
            return await super().start_workflow_update(input)

    async def start_update_with_start_workflow(
        self,
        input: StartWorkflowUpdateWithStartInput,  # noqa: A002  the SDK's name
    ) -> WorkflowUpdateHandle[Any]:
        update = input.update_workflow_input
        with _request_span(input.start_workflow_input.id, update.update):
            update.headers = _with_context(update.headers)
            return await super().start_update_with_start_workflow(input)


@contextmanager
def _request_span(workflow: str, update: str) -> Iterator[None]:
    """A span of one request. Errors are told by their type: their words may quote what was asked."""
    names = names_in(workflow)
    attributes = {"gen_ai.conversation.id": names.session, "gen_ai.agent.name": names.agent}
    with trace.get_tracer(SCOPE).start_as_current_span(
        f"longhaul.{update}",
        kind=SpanKind.CLIENT,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except Exception as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR))
            raise


def _with_context(headers: Mapping[str, Payload]) -> Mapping[str, Payload]:
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    parent = carrier.get("traceparent", "")
    return {**headers, HEADER: Payload(metadata={"encoding": b"binary/plain"}, data=parent.encode())}
