"""boto3's client of Bedrock: it signs in with one key, or as what the worker runs as, and makes each request once."""

from functools import partial
from typing import Any

import anyio.to_thread
import boto3  # type: ignore[import-untyped]
from botocore import UNSIGNED  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]

from longhaul.activities.models.apis.sdk_calls import ANSWER_SECONDS, CONNECT_SECONDS

AT_ONCE = 1_000
"""Calls of a worker: boto3 waits in a thread for each piece of each stream, and the library would have 40 of them for
all streams. A call that finds none is not heard of, and looks as if its provider had fallen silent."""


def bedrock_client(api_key: str | None, base_url: str, region: str) -> Any:
    """`api_key`: a Bedrock API key; None: the request is signed by the credentials that boto3 finds, whatever else the
    environment has. A variable with a key would be sent instead of the signature."""
    config = Config(
        signature_version="v4" if api_key is None else UNSIGNED,
        retries={"total_max_attempts": 1},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,  # to the answer's first piece; from then on who reads the stream counts
        max_pool_connections=AT_ONCE,
    )
    client: Any = boto3.Session(region_name=region).client("bedrock-runtime", endpoint_url=base_url, config=config)
    if api_key is not None:
        # boto3's own way takes no server of one's own: it wants https everywhere.
        client.meta.events.register("request-created.bedrock-runtime", partial(_bear, api_key))
    return client


def _bear(api_key: str, request: Any, **_: Any) -> None:
    request.headers["Authorization"] = f"Bearer {api_key}"


def make_room() -> None:
    """In the running loop."""
    limiter = anyio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = max(limiter.total_tokens, AT_ONCE)
