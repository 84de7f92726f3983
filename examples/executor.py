"""Run external tool calls: take what waits in any session, do it once, hand the results back.

    .venv/bin/python examples/executor.py JOURNAL_FOLDER [USER]

Stop it at any time and start it again. The journal, one file for each call, makes a call that was done but not handed
in be handed in, and not done again; where the work itself can be asked for by a key, give it the call's key as well.
"""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longhaul import Longhaul, PendingCall, Refused, Session

PAUSE_SECONDS = 1.0


def price_of(key: str, article: str) -> Any:
    """Look up a price. `key` names this call for good: a shop that knows it answers as it did before."""
    del key
    return {"article": article, "price": len(article) * 1.5}


DOES: dict[str, Callable[..., Any]] = {"price_of": price_of}
"""What this executor can do, by the name of the tool."""


async def main(journal: Path, user: str | None = None) -> None:
    async with Longhaul.connect() as app:
        while True:
            for card, call in (await app.inbox(user=user)).calls:
                if call.waits_for == "outside" and call.tool in DOES:
                    await serve(app.attach(card), call, journal)
            await asyncio.sleep(PAUSE_SECONDS)


async def serve(session: Session, call: PendingCall, journal: Path) -> None:
    """Do the call if that has not been done, and hand in what came of it."""
    key = hashlib.sha256(f"{session.workflow_id} {call.call_id}".encode()).hexdigest()
    answer = await asyncio.to_thread(done, journal / f"{key}.json", key, call)
    try:
        await session.external_result(call, answer["output"], failed=answer["failed"], by="executor")
    except Refused as refusal:
        # Interrupted meanwhile, or handed in by another executor: the session says so, and nothing is left to do.
        print(f"{call.call_id}: {refusal}", flush=True)


def done(file: Path, key: str, call: PendingCall) -> dict[str, Any]:
    """What the call came to, from the journal or by doing it now."""
    if file.exists():
        return dict(json.loads(file.read_text()))
    try:
        answer = {"output": DOES[call.tool](key, **json.loads(call.input)), "failed": False}
    except Exception as error:  # noqa: BLE001  the model reads what went wrong, and the next call is served
        answer = {"output": f"{type(error).__name__}: {error}", "failed": True}
    written = file.with_suffix(".new")
    with written.open("w") as sheet:
        sheet.write(json.dumps(answer))
        sheet.flush()
        os.fsync(sheet.fileno())
    written.replace(file)
    return answer


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:3]))
    except KeyboardInterrupt:
        sys.stdout.flush()
        # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
        os._exit(0)
