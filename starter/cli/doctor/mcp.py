"""`longhaul doctor` on the operator's MCP servers: does each answer, and what does it offer."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

from longhaul.activities.mcp.allowed_servers import BadMCPSetting
from longhaul.activities.mcp.survey import Surveyed, surveying
from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.hosting.secret_values import BadSecrets, read_secrets
from longhaul.starter.settings import Settings

_MEND = "mend [mcp.{name}] in longhaul.toml, or LONGHAUL_MCP, where workers start; or start the server"


async def on_the_mcp_servers(settings: Settings) -> AsyncIterator[Check]:
    """None where there are no servers."""
    try:
        secrets = read_secrets(settings)
    except BadSecrets:
        secrets = {}  # said by the check of the secrets
    try:
        folder, hidden = settings.data_dir / "mcp", settings.own_places
        async with surveying(settings.mcp, settings.mcp_allow, secrets, folder, hidden) as survey:
            for found in await asyncio.gather(*map(survey.ask, survey.operators)):
                yield _check(found)
    except BadMCPSetting as error:
        yield Check("mcp", ok=False, detail=str(error), mend=_MEND.format(name="NAME"))


def _check(server: Surveyed) -> Check:
    name, mend = f"mcp {server.name}", _MEND.format(name=server.name)
    if server.toolbox is None:
        return Check(name, ok=False, detail=server.told[0], mend=mend)
    about = server.toolbox.descriptors(server.toolbox.names)
    effects = Counter(one.effect.value for one in about)
    shown = ", ".join(f"{count} {effect}" for effect, count in sorted(effects.items()))
    detail = f"{len(about)} tools{f' ({shown})' if shown else ''} at {server.address}"
    return Check(
        name, ok=not server.told, detail=f"{detail}; {'; '.join(server.told)}" if server.told else detail, mend=mend
    )
