"""A provider on a real port that refuses what the published rules refuse, and remembers each thought that it signed.

Of Anthropic's Messages API, OpenAI's Responses API and Chat Completions, Google's own API and Bedrock's Converse. What
it answers is dull; what it takes is not.
Each rule says where it is published; all were looked up on 2026-11-23.
"""

import asyncio
import base64
import hashlib
import json
import re
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.activities.models.converse_wire import STREAM, converse_begins, converse_turn, told_as_others
from tests.activities.models.pictures import is_picture, kind_of
from tests.activities.models.replies.stopping import CHAT, CLAUDE, RESPONSES, stopping
from tests.activities.models.wire import (
    chat_chunk,
    chunked,
    chunks,
    claude_turn,
    cohere_calls,
    cohere_says,
    google_chunk,
    response_turn,
)

PRESERVED = "platform.claude.com/docs/build-with-claude/preserved-thinking"
VISION = "platform.claude.com/docs/build-with-claude/vision"
WORDS, AWAY = "Noted", "The model that was asked for does not exist."
SKIPPED = b"skip_thought_signature_validator"
AT_BEDROCK = "The model returned the following errors: "
BOUND = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


class Refused(Exception):
    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.fields = {"type": "invalid_request_error", "message": message, "param": param, "code": code}


Call = tuple[str, str, dict[str, Any]]
"""Its id, its tool, its arguments."""


@dataclass
class Strict:
    url: str = ""
    says: list[Call | list[Call] | Literal["away", "half"]] = field(default_factory=list)
    """What it does instead of an answer in words, where it is offered tools: a call, some at once, to know of no such
    model, or to fall silent in the midst of its words until whoever asks hangs up."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    signed: dict[str, str] = field(default_factory=dict)
    """By signature: the digest of what the thought stood behind."""
    always: str = ""
    """What it refuses everything with."""
    blind: str = ""
    """How it says that its model takes no images; empty: it does."""
    unspeakable: str = ""
    """Words that no request with them is answered for, wherever they stand in it: its classifier stops each answer."""
    stopped: int = 0
    """How many answers it has stopped."""
    betas: str = ""
    """Those that came with the last request."""
    version: str = ""
    """Of Anthropic's API, as the last request names it."""
    fell_silent: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(x.split(":")[1]) for x in head.split("\r\n") if x.lower().startswith("content-length"))
        body = json.loads(await reader.readexactly(length))
        if in_path := re.search(r"/models/([^/:]+):streamGenerateContent", head):
            body["model"] = in_path[1]
        path = head.split(" ")[1]
        told_as_others(body, path)
        self.bodies.append(body)
        self.betas, self.version = (
            ",".join(re.findall(rf"(?im)^anthropic-{name}: *(\S+)", head)) for name in ("beta", "version")
        )
        status, kind, half = 200, "text/event-stream", self._is_next("half", body)
        try:
            self._be_away(body)
            answer = self._answer(path, body)
        except Refused as refused:
            self.refusals.append(str(refused))
            status, kind = refused.status, "application/json"
            at_aws = {"__type": "ValidationException", "message": str(refused)} if path.endswith(STREAM) else {}
            answer = json.dumps({"type": "error", "error": refused.fields, **at_aws}).encode()
        length_of = f"content-length: {len(answer)}"
        if half:
            answer = _half(answer)
        if half and path.endswith(STREAM):
            answer, length_of = chunked(answer, whole=False), "transfer-encoding: chunked"
        lines = [f"HTTP/1.1 {status} Said", f"content-type: {kind}", length_of, "", ""]
        writer.write("\r\n".join(lines).encode() + answer)
        await writer.drain()
        if half:
            self.fell_silent.set()
            await reader.read()
        writer.close()

    def _be_away(self, body: dict[str, Any]) -> None:
        if self._is_next("away", body):
            self.says.pop(0)
            raise Refused(AWAY, status=404)

    def _is_next(self, what: str, body: dict[str, Any]) -> bool:
        return bool(self.says and self.says[0] == what and body.get("tools"))

    def _answer(self, path: str, body: dict[str, Any]) -> bytes:
        if self.always:
            raise Refused(self.always)
        if self.unspeakable and self.unspeakable in json.dumps(body):
            self.stopped += 1
            return _stopped(path)
        if path.endswith("/v1/messages"):
            check_messages(body, self)
            forced = body.get("tool_choice", {}).get("type") == "tool"
            signature = self._sign(beginning_of(body, len(body["messages"])))
            thought = None if forced else (f"I think of {len(self.signed)}.", signature)
            return claude_turn(thought, self._said(body), *self._calls(body))
        if path.endswith("/responses"):
            check_input(body, self)
            signature, words, calls = self._sign(""), self._said(body), self._calls(body)
            return response_turn(signature, words, *calls, reasoning_id=f"rs_{len(self.signed)}")
        if path.endswith(STREAM):
            check_converse(body, self)
            thought = ("Hm.", self._sign(str(body["model"]))) if "claude" in body["model"] else None
            calls = self._calls(body)
            return converse_turn(thought, "" if calls else self._said(body), *calls)
        if "contents" in body:
            check_contents(body, self)
            return self._generated(str(body["model"]), self._said(body), self._calls(body))
        check_chat(body, self)
        if path.endswith("/v2/chat"):
            words, calls = self._said(body), self._calls(body)
            return cohere_calls(*calls) if calls else cohere_says(words)
        return self._chatted(str(body["model"]), self._said(body), self._calls(body))

    def _chatted(self, model: str, words: str, calls: list[Call]) -> bytes:
        """With reasoning or a signature, where a server of this model gives one."""
        said: dict[str, Any] = {} if calls else {"content": words}
        for index, (call_id, name, arguments) in enumerate(calls):
            function = {"name": name, "arguments": json.dumps(arguments)}
            made: dict[str, Any] = {"index": index, "id": call_id, "type": "function", "function": function}
            if "gemini" in model and index == 0:
                made["extra_content"] = {"google": {"thought_signature": self._sign(model)}}
            said.setdefault("tool_calls", []).append(made)
        before = [chat_chunk({"reasoning_content": self._sign(model)})] if re.search("deepseek|kimi", model) else []
        reason = "tool_calls" if calls else "stop"
        return chunks(*before, chat_chunk({"role": "assistant", **said}), chat_chunk({}, reason))

    def _generated(self, model: str, words: str, calls: list[Call]) -> bytes:
        """A thought, then calls, of which the first is signed, or words that are signed."""
        signature = base64.b64encode(self._sign(model).encode()).decode()
        made: list[dict[str, Any]] = [
            {"functionCall": {"id": call[0], "name": call[1], "args": call[2]}} for call in calls
        ]
        first, *others = made or [{"text": words}]
        told = google_chunk({"text": "Hm.", "thought": True}, {**first, "thoughtSignature": signature}, *others)
        return chunks(told, google_chunk({"text": ""}, reason="STOP"), done=False)

    def _sign(self, beginning: str) -> str:
        signature = f"signed-{hashlib.sha256(f'{self.url} {len(self.signed)}'.encode()).hexdigest()}"
        self.signed[signature] = beginning
        return signature

    def _calls(self, body: dict[str, Any]) -> list[Call]:
        """The one that is forced, with arguments that fit, or the next of `says`."""
        choice = body.get("tool_choice")
        name = choice.get("name", choice.get("function", {}).get("name")) if isinstance(choice, dict) else None
        if choice == "REQUIRED":  # Cohere's word, beside the one tool
            name = body["tools"][0]["function"]["name"]
        for tool in body.get("tools", ()) if name else ():
            about = tool.get("function", tool)
            if about["name"] == name:
                return [("toolu_forced", str(name), _example(about.get("input_schema") or about["parameters"]))]
        if not (self.says and body.get("tools")) or _last_words(body).count("fit this JSON schema:\n"):
            return []
        told = self.says.pop(0)
        return told if isinstance(told, list) else [told] if isinstance(told, tuple) else []

    def _said(self, body: dict[str, Any]) -> str:
        _, asked, schema = _last_words(body).partition("fit this JSON schema:\n")
        return json.dumps(_example(json.loads(schema))) if asked else f"{WORDS}, {len(self.bodies)}."


@asynccontextmanager
async def on_a_strict_port() -> AsyncIterator[Strict]:
    told = Strict()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0, limit=1 << 24)
    told.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server:
        yield told


def _last_words(body: dict[str, Any]) -> str:
    told = body.get("messages", body.get("input", body.get("contents", []))) or [{}]
    content = told[-1].get("content", told[-1].get("parts")) or ""
    texts = [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]
    return texts[-1] if texts else ""


def _stopped(path: str) -> bytes:
    if path.endswith("/v1/messages"):
        return stopping(CLAUDE, "refusal", "")
    return stopping(RESPONSES if path.endswith("/responses") else CHAT, "content_filter", "")


def _half(answer: bytes) -> bytes:
    """Up to the event that has the words, and this one too where it tells of no end."""
    if answer.startswith(b"\0"):
        return converse_begins(f"{WORDS}, and")
    return answer[: answer.index(b"\n\n", answer.index(WORDS.encode())) + 2]


def _example(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: [] if part.get("type") == "array" else "Of note." for name, part in schema["properties"].items()}


def _plain(value: Any) -> Any:
    """Without cache marks: they are no part of a conversation."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if name != "cache_control"}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def beginning_of(body: dict[str, Any], end: int) -> str:
    told = _plain([body.get("system"), body.get("tools"), body["messages"][:end]])
    return hashlib.sha256(json.dumps(told).encode()).hexdigest() + str(body["model"])


def check_messages(body: dict[str, Any], server: Strict) -> None:
    """Anthropic's."""
    binds = bool(re.search(r"-5-[1-9]", body["model"]))
    if binds and body.get("tool_choice", {}).get("type") == "tool":
        raise Refused("tool_choice: forced tool use is not supported for this model")  # models/opus-5-5/whats-new
    _check_many_images(body)
    for i, message in enumerate(body["messages"]):
        for j, block in enumerate(message["content"]):
            where = f"messages.{i}.content.{j}"
            if block["type"] == "thinking":
                if block["signature"] not in server.signed:
                    raise Refused(f"{where}: Invalid `signature` in `thinking` block")
                if binds and server.signed[block["signature"]] != beginning_of(body, i):
                    raise Refused(f"{where}: {BOUND}")
            elif block["type"] == "tool_result":
                inner = block["content"]
                if block.get("is_error") and any(part["type"] != "text" for part in inner):
                    raise Refused(f"{where}.tool_result: all content must be type text if `is_error` is true")
                for k, part in enumerate(inner):
                    _check_source(part, f"{where}.tool_result.content.{k}", server)
            else:
                _check_source(block, where, server)


def _check_source(block: dict[str, Any], where: str, server: Strict) -> None:
    if block["type"] not in ("image", "document"):
        return
    source = block["source"]
    if block["type"] == "image" and server.blind:
        raise Refused(server.blind)
    if source["type"] == "url":
        if "gone" in source["url"]:
            raise Refused("Unable to download the file. Please verify the URL and try again.")
        return
    try:
        data = base64.b64decode(source["data"], validate=True)
    except ValueError:
        raise Refused(f"{where}.{block['type']}.source.base64.data: invalid base64 data") from None
    if block["type"] == "document":
        _check_document(data, where)
    else:
        _check_image(data, source["media_type"], where)


def _check_document(data: bytes, where: str) -> None:
    if not data.startswith(b"%PDF-") or b"%%EOF" not in data:
        raise Refused(f"{where}.pdf.source.base64.data: The PDF specified was not valid.")
    if b"/Encrypt" in data:
        raise Refused(f"{where}.pdf.source.base64.data: The PDF specified is password protected.")


def _check_many_images(body: dict[str, Any]) -> None:
    """platform.claude.com, "Vision", as of 2026-11-23."""
    blocks = [(f"messages.{i}.content.{j}", block) for i, message in enumerate(body["messages"])
              for j, block in enumerate(message["content"])]  # fmt: skip
    inner = [(f"{where}.content.{k}", part) for where, block in blocks if block["type"] == "tool_result"
             for k, part in enumerate(block["content"])]  # fmt: skip
    images = [(where, block) for where, block in (*blocks, *inner) if block["type"] == "image"]
    for where, block in images if len(images) > 20 else ():
        data = base64.b64decode(block["source"].get("data", ""))
        if data.startswith(b"\x89PNG") and max(struct.unpack(">II", data[16:24])) > 2000:
            told = "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"
            raise Refused(f"{where}.image.source.base64.data: {told}")


def _check_image(data: bytes, declared: str, where: str) -> None:
    if len(data) * 4 / 3 > 5 * 1024 * 1024:
        raise Refused(f"{where}.image.source.base64: image exceeds 5 MB maximum: {len(data)} bytes > 5242880 bytes")
    kind = kind_of(data)
    if kind and kind != declared:
        told = f"specified using the {declared} media type, but the image appears to be a {kind} image"
        raise Refused(f"{where}.image.source.base64.data: The image was {told}")
    if not is_picture(data):
        raise Refused("Could not process image")
    if kind == "image/png" and max(struct.unpack(">II", data[16:24])) > 8000:
        told = "At least one of the image dimensions exceed max allowed size: 8000 pixels"
        raise Refused(f"{where}.image.source.base64.data: {told}")


def check_input(body: dict[str, Any], server: Strict) -> None:
    """OpenAI's Responses API."""
    for i, item in enumerate(body["input"]):
        if item.get("type") == "reasoning" and item["encrypted_content"] not in server.signed:
            told = f"The encrypted content {item['encrypted_content'][:4]}... could not be verified."
            raise Refused(told, code="invalid_encrypted_content")  # github.com/openai/codex/issues/8119
        content = item.get("content", item.get("output"))
        for j, part in enumerate(content if isinstance(content, list) else ()):
            if part["type"] == "input_image":
                _check_url(part["image_url"], f"input[{i}].content[{j}].image_url", server)


def check_chat(body: dict[str, Any], server: Strict) -> None:
    """Chat Completions."""
    for i, message in enumerate(body["messages"]):
        if message["role"] == "assistant":
            _check_reasoning(message, body["model"], server)
        for j, part in enumerate(message["content"] if isinstance(message["content"], list) else ()):
            if part["type"] == "image_url":
                _check_url(part["image_url"]["url"], f"messages.[{i}].content.[{j}].image_url", server)


def _check_reasoning(message: dict[str, Any], model: str, server: Strict) -> None:
    reasoning, calls = message.get("reasoning_content"), message.get("tool_calls")
    if reasoning is not None and reasoning.strip() and server.signed.get(reasoning) != model:
        raise Refused("Unexpected field 'reasoning_content': this is not ours")
    if "deepseek" in model and calls and not reasoning:  # api-docs.deepseek.com/guides/thinking_mode
        raise Refused("The `reasoning_content` in the thinking mode must be passed back to the API.")
    for place, call in enumerate(calls or ()):
        signature = call.get("extra_content", {}).get("google", {}).get("thought_signature")
        if "gemini" in model and not place and not signature:  # ai.google.dev/gemini-api/docs/thought-signatures
            raise Refused("Function call is missing a thought_signature in functionCall parts.")
        if signature not in (None, "skip_thought_signature_validator") and server.signed.get(signature) != model:
            raise Refused("Corrupted thought signature.")


def check_contents(body: dict[str, Any], server: Strict) -> None:
    """Google's own API: ai.google.dev/gemini-api/docs/thought-signatures, as of 2026-11-23."""
    for content in body["contents"]:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and "thoughtSignature" not in calls[0]:
            raise Refused("Function call is missing a thought_signature in functionCall parts.")
        for part in content["parts"]:
            signature = base64.urlsafe_b64decode(part.get("thoughtSignature", "").replace("+", "-").replace("/", "_"))
            if signature not in (b"", SKIPPED) and server.signed.get(signature.decode()) != body["model"]:
                raise Refused("Corrupted thought signature.")


def check_converse(body: dict[str, Any], server: Strict) -> None:
    """Bedrock's: docs.aws.amazon.com, "Converse", as of 2026-11-26."""
    for i, message in enumerate(body["messages"]):
        for j, block in enumerate(message["content"]):
            where = f"messages.{i}.content.{j}"
            signature = block.get("reasoningContent", {}).get("reasoningText", {}).get("signature")
            if signature is not None and signature not in server.signed:
                raise Refused(f"{AT_BEDROCK}{where}: Invalid `signature` in `thinking` block")
            for part in (block, *block.get("toolResult", {}).get("content", ())):
                if "image" in part and server.blind:
                    raise Refused(server.blind)
                if "image" in part and not is_picture(base64.b64decode(part["image"]["source"]["bytes"])):
                    raise Refused(f"{AT_BEDROCK}Could not process image")
                if "document" in part:
                    _check_document(base64.b64decode(part["document"]["source"]["bytes"]), where)


def _check_url(url: str, where: str, server: Strict) -> None:
    if server.blind:
        raise Refused(server.blind, status=500 if "mmproj" in server.blind else 400, param=where)
    if not url.startswith("data:"):
        if "gone" in url:
            raise Refused(f"Error while downloading {url}.", param="url", code="invalid_image_url")
        return
    try:
        data = base64.b64decode(url.partition(",")[2], validate=True)
    except ValueError:
        raise Refused("Invalid base64 image_url.", param=where, code="invalid_base64") from None
    if not is_picture(data):
        told = "The image data you provided does not represent a valid image. Please check your input and try again."
        raise Refused(told, param="input", code="invalid_image")
