"""The clients of the vendors' SDKs, as pydantic-ai takes them: they retry nothing, and add nothing from the environment
but, where a cloud is signed in to by identity, what the worker runs as."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
import httpx2
import openai
from pydantic_ai.providers import Provider, infer_provider_class

from longhaul.activities.models.apis.ambient import OPENAI, left_out
from longhaul.activities.models.apis.streams import ANSWER_SECONDS, CONNECT_SECONDS
from longhaul.activities.models.apis.vendors import Hosted, Vendor


def http_client(vendor: Vendor, hooks: Mapping[str, Sequence[Any]]) -> Any:
    """Each SDK wants a client of its own kind, those of OpenAI and Groq with their own defaults."""
    events = {name: list(each) for name, each in hooks.items()}
    if vendor.sdk == "openai":
        return openai.DefaultAsyncHttpxClient(event_hooks=events)
    if vendor.sdk == "groq":
        import groq  # noqa: PLC0415

        return groq.DefaultAsyncHttpxClient(event_hooks=events)
    library: Any = httpx if vendor.sdk == "cohere" else httpx2
    limits = library.Limits(max_connections=1_000, max_keepalive_connections=100)
    timeout = library.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
    return library.AsyncClient(timeout=timeout, limits=limits, event_hooks=events)


def provider_of(name: str, vendor: Vendor, api_key: str | None, at: Hosted, http: Any) -> Provider[Any]:
    """`api_key`: None where the worker signs in as what it runs as."""
    kind: Callable[..., Provider[Any]] = infer_provider_class(vendor.library_name or name)
    if vendor.sdk == "bedrock":
        from longhaul.activities.models.apis.bedrock_client import bedrock_client  # noqa: PLC0415  boto3 is large

        return kind(bedrock_client=bedrock_client(api_key, at.base_url, at.region))
    if vendor.library_name == "google-cloud":
        from google.oauth2.credentials import Credentials  # noqa: PLC0415

        bearing: Any = None if api_key is None else Credentials(token=api_key)  # type: ignore[no-untyped-call]
        return kind(credentials=bearing, project=at.project, location=at.region, base_url=at.base_url, http_client=http)
    key, base_url = api_key or "", at.base_url
    if vendor.sdk == "openai":
        headers = left_out(openai.Omit(), key, *OPENAI)
        return kind(
            openai_client=openai.AsyncOpenAI(
                api_key=key, base_url=base_url, max_retries=0, default_headers=headers, http_client=http
            )
        )
    if vendor.sdk == "groq":
        import groq  # noqa: PLC0415  the library of one vendor

        headers = left_out(groq.Omit(), key, "GROQ_CUSTOM_HEADERS")
        return kind(
            groq_client=groq.AsyncGroq(
                api_key=key, base_url=base_url, max_retries=0, default_headers=headers, http_client=http
            )
        )
    if vendor.sdk == "cohere":
        import cohere  # noqa: PLC0415

        return kind(cohere_client=cohere.AsyncClientV2(key, base_url=base_url, max_retries=0, httpx_client=http))
    return kind(api_key=key, base_url=base_url, http_client=http)
