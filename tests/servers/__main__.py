"""`python -m tests.servers`: fetch what the tests run against, before the tests start to count seconds."""

import os
import sys
from collections.abc import Callable

from longhaul.starter.dev_server.temporal_cli import Say, TemporalCliMissing, find_temporal
from tests.servers.aimock import find_aimock
from tests.servers.axe_core import find_axe_core
from tests.servers.bubblewrap import find_bubblewrap
from tests.servers.chromium import find_chromium
from tests.servers.compose import find_compose_loader
from tests.servers.local import ServerUnavailable
from tests.servers.mariadb_server import find_mariadb
from tests.servers.mcp_packages import find_mcp_packages
from tests.servers.openapi_generator import find_openapi_generator
from tests.servers.postgres_server import find_postgres
from tests.servers.redis_server import find_redis
from tests.servers.time_server import find_time_server
from tests.servers.vocabularies import find_vocabularies

FINDERS: dict[str, Callable[[Say], object]] = {
    "temporal": find_temporal,
    "time-skipping test server": find_time_server,
    "redis": find_redis,
    "postgres": find_postgres,
    "mariadb": find_mariadb,
    "aimock": find_aimock,
    "vocabularies": find_vocabularies,
    "MCP servers": find_mcp_packages,
    "bubblewrap": find_bubblewrap,
    "chromium": find_chromium,
    "axe-core": find_axe_core,
    "compose loader": find_compose_loader,
    "openapi generator": find_openapi_generator,
}


def main() -> int:
    """Return 1 where CI=true and something is missing; elsewhere say so and let its tests be skipped."""
    missing = False
    for name, find in FINDERS.items():
        try:
            print(f"{name}: {find(_say)}")
        except (TemporalCliMissing, ServerUnavailable) as reason:
            missing = True
            print(f"{name}: MISSING, its tests will be skipped: {reason}", file=sys.stderr)
    return 1 if missing and os.environ.get("CI") == "true" else 0


def _say(text: str) -> None:
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
