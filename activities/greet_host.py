"""greet_host: the word of a host that is back. Its queue has no other way to say that somebody polls it."""

from temporalio import activity

from longhaul.activities.contract import GREET_HOST, GreetHost
from longhaul.agent.entries import HostBack


@activity.defn(name=GREET_HOST)
async def greet_host(ask: GreetHost) -> HostBack:
    return HostBack(host=ask.host)
