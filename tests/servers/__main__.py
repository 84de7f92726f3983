"""`python -m tests.servers`: fetch what the tests run against, before the tests start to count seconds."""

import os
import sys
from collections.abc import Callable

from starter.provision.temporal_cli import Say, TemporalCliMissing, find_temporal
from tests.servers.aimock import find_aimock
from tests.servers.bubblewrap import find_bubblewrap
from tests.servers.local import ServerUnavailable
from tests.servers.mariadb_server import find_mariadb
from tests.servers.postgres_server import find_postgres
from tests.servers.redis_server import find_redis

FINDERS: dict[str, Callable[[Say], object]] = {
    "temporal": find_temporal,
    "redis": find_redis,
    "postgres": find_postgres,
    "mariadb": find_mariadb,
    "aimock": find_aimock,
    "bubblewrap": find_bubblewrap,
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
