"""A tool that is careless with a secret in each way that a worker's own output knows; its module is as bad."""

import base64
import logging
import sys
import traceback
from urllib.parse import quote

from longhaul.activities.attempt.secrets import secret
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect

own = logging.getLogger("careless")
own.addHandler(logging.StreamHandler())


@tool(effect=Effect.ONCE)
def blurt() -> str:
    """Print the key of the gate everywhere, and fail with it."""
    key = secret("GATE_KEY")
    print("blurted", key, flush=True)
    print("in base64", base64.b64encode(key.encode()).decode(), file=sys.stderr)
    print("in a link", f"https://example.org/?key={quote(key, safe='')}")
    sys.stderr.buffer.write(f"in bytes {key}\n".encode())
    own.error("logged %s", key)
    logging.getLogger("elsewhere").debug("logged %r", {"key": key})
    own.error("%d is no number", key)
    traceback.print_exception(RuntimeError(f"printed {key}"))
    raise RuntimeError(f"raised {key}") from ValueError(base64.b64encode(b"x" + key.encode()).decode())
