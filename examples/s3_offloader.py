"""An offloader of your own: what leaves the context goes to a bucket of any server that speaks S3's GET and PUT.

    LONGHAUL_OFFLOADERS=examples.s3_offloader:for_owner \\
    LONGHAUL_S3_ENDPOINT=http://127.0.0.1:9000 LONGHAUL_S3_BUCKET=longhaul .venv/bin/longhaul dev

Agents choose it with `offloader="examples.s3_offloader:for_owner"`. Requests are not signed: let the bucket take them
from the workers' network, or give an `authorization` header. A signing client (boto3) can take the place of `_get` and
`_put`. What is kept here comes back to the model by the tools of that store, not by Read.
"""

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpx

from longhaul import Msg, ToolResultBlock, batch_of, key_of, lines_of, result_text, safe_name

ATTEMPTS = 8
"""Of a change that another worker's comes between."""


class BucketError(Exception):
    """The bucket did not do what it was asked; the session goes on without a reference."""


class S3Offloader:
    """An `Offloader` onto one bucket, path-style: `{endpoint}/{bucket}/{prefix}/sessions/{session}/…`."""

    def __init__(self, endpoint: str, bucket: str, prefix: str, authorization: str = "") -> None:
        self._bucket_url = f"{endpoint.rstrip('/')}/{quote(bucket)}"
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._headers = {"Authorization": authorization} if authorization else {}

    async def offload_context(self, session_id: str, msgs: Sequence[Msg], **kwargs: Any) -> str:
        """Append by writing the object again. It must still be the one that was read (If-Match, If-None-Match), or
        messages of another worker would get lost."""
        data: dict[str, bytes] = {}
        lines = lines_of(msgs, batch_of(msgs, str(kwargs.get("batch") or "")), self._collecting(data))
        key = self._key(session_id, "context.jsonl")
        async with self._client() as client:
            await self._put_all(client, data)
            for _ in range(ATTEMPTS):
                before, version = await self._get(client, key)
                known = {key_of(line) for line in before.splitlines(keepends=True)}
                new = b"".join(line.data for line in lines if line.key not in known)
                condition = {"If-Match": version} if version else {"If-None-Match": "*"}
                if not new or await self._put(client, key, before + new, condition):
                    return self._address(key)
        raise BucketError(f"{self._address(key)} was changed by others {ATTEMPTS} times in a row")

    async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
        """Write the whole output; another output of the same id gets a number."""
        data: dict[str, bytes] = {}
        text = result_text(tool_result, self._collecting(data)).encode("utf-8", "replace")
        async with self._client() as client:
            await self._put_all(client, data)
            for number in range(1_000):
                name = f"tool_result-{safe_name(tool_result.id)}{f'({number})' if number else ''}.txt"
                key = self._key(session_id, name)
                if await self._put(client, key, text, {"If-None-Match": "*"}):
                    return self._address(key)
                if (await self._get(client, key))[0] == text:
                    return self._address(key)
        raise BucketError(f"too many results are named {tool_result.id!r}")

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(headers=self._headers, timeout=10)

    async def _get(self, client: httpx.AsyncClient, key: str) -> tuple[bytes, str]:
        """Content and version (ETag); both empty where there is nothing."""
        answer = await client.get(f"{self._bucket_url}/{quote(key)}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return b"", ""
        if answer.is_error:
            raise BucketError(f"GET {self._address(key)}: {answer.status_code}")
        return answer.content, answer.headers.get("ETag", "")

    async def _put(self, client: httpx.AsyncClient, key: str, content: bytes, condition: dict[str, str]) -> bool:
        """False when the condition does not hold."""
        answer = await client.put(f"{self._bucket_url}/{quote(key)}", content=content, headers=condition)
        if answer.status_code in (httpx.codes.PRECONDITION_FAILED, httpx.codes.CONFLICT):
            return False
        if answer.is_error:
            raise BucketError(f"PUT {self._address(key)}: {answer.status_code}")
        return True

    async def _put_all(self, client: httpx.AsyncClient, data: dict[str, bytes]) -> None:
        for key, content in data.items():
            await self._put(client, key, content, {})

    def _collecting(self, data: dict[str, bytes]) -> Any:
        def keep(name: str, content: bytes) -> str:
            data[f"{self._prefix}/data/{name}"] = content
            return self._address(f"{self._prefix}/data/{name}")

        return keep

    def _key(self, session_id: str, name: str) -> str:
        return f"{self._prefix}/sessions/{safe_name(session_id)}/{name}"

    def _address(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"


def for_owner(owner: str) -> S3Offloader:
    """What LONGHAUL_OFFLOADERS names: a prefix of the bucket for each agent and user."""
    environ = os.environ
    return S3Offloader(
        environ["LONGHAUL_S3_ENDPOINT"],
        environ["LONGHAUL_S3_BUCKET"],
        owner,
        environ.get("LONGHAUL_S3_AUTHORIZATION", ""),
    )
