"""Write a line for each tool call, with who asked for it: `session.reply("…", context={"ticket": 4711})`.

    LONGHAUL_MIDDLEWARES=examples.audit_log:AuditLog AUDIT_LOG=/var/log/agents.jsonl longhaul dev

A call that ran again after its worker was lost has a line for each attempt.
"""

import asyncio
import json
import os
import time
from pathlib import Path

from longhaul import Middleware, RuntimeContext, RunTool, ToolOutput, ToolUse


class AuditLog(Middleware):
    name = "audit_log"

    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        started = time.time()
        output = await call_next(use)
        line = {
            "at": started,
            "seconds": round(time.time() - started, 3),
            "user": context.user_id,
            "session": context.session_id,
            "request": context.request_id,
            "ticket": context.get("ticket"),
            "call": context.call_id,
            "attempt": context.attempt,
            "tool": use.name,
            "arguments": use.arguments,
            "failed": output.failed,
        }
        await asyncio.to_thread(_write, Path(os.environ.get("AUDIT_LOG", "audit.jsonl")), json.dumps(line))
        return output


def _write(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
