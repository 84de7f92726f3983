"""One way to reach Temporal, for everybody who does."""

import re

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError

from workflows.contract import DATA_CONVERTER

DEFAULT_ADDRESS = "127.0.0.1:7233"


class Unreachable(Exception):
    """No Temporal server answers; the sentence says where it was looked for and how to start one."""


async def connect(address: str | None = None, namespace: str | None = None) -> Client:
    """A client by flags, `TEMPORAL_…` variables or Temporal's configuration file. Raises Unreachable."""
    config = ClientConfig.load_client_connect_config()
    if address is not None:
        config["target_host"] = address
    if namespace is not None:
        config["namespace"] = namespace
    where = config.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        return await Client.connect(**config, data_converter=DATA_CONVERTER)
    except (RPCError, RuntimeError) as error:
        raise Unreachable(
            f"no Temporal server answers at {where!r} ({_cause(error)}); start one with `longhaul dev`, or set "
            "TEMPORAL_ADDRESS"
        ) from error


def _cause(error: Exception) -> str:
    """The last, plainest part of the transport's nested error."""
    quoted = re.findall(r'"([^"]+)"', str(error))
    return quoted[-1] if quoted else str(error)[:200]
