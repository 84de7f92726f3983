"""Tells by HTTP: a signed POST of JSON, which follows no redirect."""

import asyncio
import hashlib
import hmac
import time
from urllib.parse import urlsplit

import httpx

from longhaul.activities.notify.channels import NotificationMessage, NotNotified
from longhaul.agent.plain.values import digest_of

SECONDS = 2.0
PAUSES_SECONDS = (0.2, 1.0, 0.0)
"""Behind each try that came to nothing for now: a 5xx, a 429 or silence."""
TOO_MANY = 429


class Webhook:
    """A 2xx means that it is told. The receiver checks the signature as `signature` makes it, and the time."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key
        self._host = urlsplit(url).hostname or ""
        self.name = f"webhook:{digest_of(url)[:8]}"

    async def tell(self, message: NotificationMessage) -> None:
        body = message.model_dump_json().encode()
        trouble = ""
        async with httpx.AsyncClient(follow_redirects=False, timeout=SECONDS, trust_env=False) as client:
            for pause in PAUSES_SECONDS:
                try:
                    async with asyncio.timeout(SECONDS):  # httpx bounds each piece, and an answer may come in many
                        status = await self._posted(client, message, body)
                except (httpx.HTTPError, TimeoutError) as error:
                    trouble = f"the webhook at {self._host} could not be reached: {type(error).__name__}"
                else:
                    if httpx.codes.is_success(status):
                        return
                    trouble = f"the webhook at {self._host} answered {status}"
                    if status < 500 and status != TOO_MANY:
                        break
                await asyncio.sleep(pause)
        raise NotNotified(trouble)

    async def _posted(self, client: httpx.AsyncClient, message: NotificationMessage, body: bytes) -> int:
        """The status alone counts: what stands behind it is not read, however long it is."""
        now = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": message.key,
            "X-Longhaul-Timestamp": now,
            "X-Longhaul-Signature": signature(self._key, now, body),
        }
        async with client.stream("POST", self._url, content=body, headers=headers) as answer:
            return answer.status_code


def signature(key: str, timestamp: str, body: bytes) -> str:
    """`sha256=` and the HMAC-SHA256 in hex of timestamp, a full stop, and the body as it came."""
    made = hmac.new(key.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"sha256={made.hexdigest()}"
