"""One request to the console: who makes it, what it has sent, and what it may ask. All of that goes through the HTTP
API's own handlers.

A visitor's token is in a cookie that no script reads; a form proves that it is the console's own.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import Response

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, Msg, TextBlock, UserMsg
from longhaul.starter.client.updates import MEDIA_TYPES
from longhaul.starter.dev_server.web_ui import is_own
from longhaul.starter.serve.event_stream import LAST_EVENT_ID
from longhaul.starter.serve.problems import Problem, wrong
from longhaul.starter.serve.request_checks import MOST_BODY_BYTES, caller_of, carried_out, check_body, read_body
from longhaul.starter.serve.requests import Call, Served, path_values
from longhaul.starter.serve.response_bodies import Row
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.serve.tokens import Caller, Scope

COOKIE = "longhaul_token"
PATH = "/console"
FORM_KEY = "form_key"
"""The hidden field of every form."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who was let in."""

    caller: Caller
    authorization: str
    """As a request to the HTTP API would carry it; empty where nobody signs in."""
    form_key: str


class Entrance:
    """Lets people in as the HTTP API lets programs in: by the same tokens."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._secret = secrets.token_bytes(32)
        """In place of a token where nobody signs in."""

    @property
    def has_login(self) -> bool:
        return not self._served.is_open

    def visitor(self, request: Request) -> Visitor:
        """Raises Problem for whoever is not signed in, or may not read."""
        return self.known(request.cookies.get(COOKIE, ""))

    def known(self, token: str) -> Visitor:
        """Raises Problem."""
        has_login = self.has_login
        authorization = f"Bearer {token}" if has_login else ""
        caller = caller_of(self._served, authorization, "read")
        key = token.encode("utf-8", "surrogatepass") if has_login else self._secret
        return Visitor(caller, authorization, hmac.new(key, b"longhaul console form", hashlib.sha256).hexdigest())

    def check_origin(self, request: Request) -> None:
        """Of what changes something: browsers always say where it comes from. Raises Problem."""
        if not is_own(request.headers.get("origin", ""), request.headers.get("host", "")):
            raise Problem("forbidden", "Origin: this page takes what its own forms send, and nothing else")

    def check_form(self, visitor: Visitor, form: Mapping[str, str]) -> None:
        """Raises Problem for a form that this visitor was not shown."""
        if not hmac.compare_digest(form.get(FORM_KEY, "").encode(), visitor.form_key.encode()):
            raise Problem("forbidden", "this form is not yours, or is older than your sign-in; load the page again")

    def remember(self, request: Request, response: Response, token: str) -> None:
        """Until the browser is closed. A proxy that says TLS is believed: a lie costs the liar their own cookie."""
        behind_tls = request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
        response.set_cookie(
            COOKIE, token, path=self._served.root_path + PATH, secure=behind_tls, httponly=True, samesite="strict"
        )

    def forget(self, response: Response) -> None:
        response.delete_cookie(COOKIE, path=self._served.root_path + PATH, httponly=True, samesite="strict")


MOST_FIELDS = 60
MOST_FILES = 20
URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


class SentFile(NamedTuple):
    """A file that was chosen in a form."""

    name: str
    data: bytes


class Filled(NamedTuple):
    """A form as it was filled in."""

    fields: dict[str, str]
    files: tuple[SentFile, ...] = ()


async def read_form(request: Request) -> Filled:
    """Raises Problem."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (URL_ENCODED, MULTIPART):
        raise Problem("media-type", f"Content-Type: {kind!r} is not read here; send a form")
    body = await read_body(request)
    try:
        if kind == MULTIPART:
            pairs, files = await _parts(request.headers, body)
        else:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
            files = []
        # A charset of the sender's own may make of it what nothing could store.
        "".join((*chain(*pairs), *(file.name for file in files))).encode()
    except (ValueError, KeyError, MultiPartException) as error:
        raise Problem("malformed", f"body: it is no form ({error})") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise Problem("malformed", "body: a field is there more than once; send it once")
    return Filled({name: value.replace("\r\n", "\n") for name, value in pairs}, tuple(files))


async def _parts(headers: Headers, body: bytes) -> tuple[list[tuple[str, str]], list[SentFile]]:
    async def whole() -> AsyncGenerator[bytes]:
        yield body

    # The body is bounded already; a part may be all of it.
    parser = MultiPartParser(
        headers, whole(), max_files=MOST_FILES, max_fields=MOST_FIELDS, max_part_size=MOST_BODY_BYTES
    )
    found = await parser.parse()
    pairs, files = list[tuple[str, str]](), list[SentFile]()
    for name, value in found.multi_items():
        if isinstance(value, UploadFile):
            data = await value.read()
            # A browser sends one without a name where nothing was chosen.
            files += [SentFile(value.filename, data)] if value.filename else []
        else:
            pairs.append((name, value))
    await found.close()
    return pairs, files


def message_of(text: str, files: Sequence[SentFile]) -> str | Msg:
    """The text, and behind it what is in the files. Raises Problem for one that no model could be shown."""
    if not files:
        return text
    said = [TextBlock(text=text)] if text.strip() else []
    return UserMsg("user", [*said, *(_block(PurePath(name).name, data) for name, data in files)])


def _block(name: str, data: bytes) -> TextBlock | DataBlock:
    media_type = MEDIA_TYPES.get(PurePath(name).suffix.lower())
    if media_type is not None:
        return DataBlock(source=Base64Source(data=base64.b64encode(data).decode(), media_type=media_type), name=name)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise wrong(
            "files",
            name,
            f"is neither text in UTF-8 nor one of {', '.join(sorted(MEDIA_TYPES))}; leave it out",
        )
    return TextBlock(text=f"The file {name!r}:\n\n{text}")


NAMED = {one.name: one for one in OPERATIONS}
WHOSE = ("user", "anonymous")


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of somebody who was let in."""

    served: Served
    request: Request
    visitor: Visitor
    form: Mapping[str, str]
    """What was filled in; empty for a page that is looked at."""
    has_login: bool
    files: tuple[SentFile, ...] = ()
    """Those that were chosen with it."""

    @property
    def home(self) -> str:
        """Path of the inbox."""
        return self.served.root_path + PATH

    @property
    def server(self) -> str:
        """Address of the Temporal server that these sessions are on."""
        return self.served.app.client.service_client.config.target_host

    @property
    def whose(self) -> dict[str, str]:
        """Another user's sessions, where the address says so."""
        return {name: value for name, value in self.request.query_params.items() if name in WHOSE}

    def may(self, scope: Scope) -> bool:
        return scope in self.visitor.caller.scopes

    async def ask(
        self,
        name: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        path: Mapping[str, str] | None = None,
    ) -> Any:
        """What the operation of that name answers. Raises Problem, and what `problem_of` knows."""
        return await carried_out(NAMED[name], self.call(name, query, body, path))

    def call(
        self,
        name: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        path: Mapping[str, str] | None = None,
    ) -> Call:
        """What a request by HTTP to that operation would be. Raises Problem and ValidationError."""
        operation = NAMED[name]
        caller = caller_of(self.served, self.visitor.authorization, operation.scope, operation.also)
        asked = operation.query.model_validate({**self.whose, **(query or {})})
        given = None if operation.body is None else operation.body.model_validate(body or {})
        if given is not None:
            check_body(operation, caller, given)
        headers = {"authorization": self.visitor.authorization}
        if seen := self.request.headers.get(LAST_EVENT_ID):
            headers[LAST_EVENT_ID] = seen
        where = path_values(self.request.path_params) if path is None else path
        return Call(self.served, caller, where, asked, given, Headers(headers))

    def session_link(self, agent: str, session: str, user: str | None, page: str = "", **query: str) -> str:
        """Of a session's page, or one below it."""
        own = self.visitor.caller.user
        whose = {} if user == own else {"anonymous": "true"} if user is None else {"user": user}
        below = f"/{page}" if page else ""
        asked = urlencode({**query, **whose})
        return f"{self.home}/s/{quote(agent, safe='')}/{quote(session, safe='')}{below}{'?' if asked else ''}{asked}"

    def row_link(self, row: Row, page: str = "", **query: str) -> str:
        return self.session_link(row.agent, row.session_id, row.user_id, page, **query)

    def listed(self, page: str, asked: Mapping[str, str], start: int) -> str:
        """A list with these filters, from that row on."""
        where = urlencode({**asked, **self.whose, **({"from": start} if start else {})})
        return f"{self.home}{page}{'?' if where else ''}{where}"

    def here(self, page: str = "", **query: str) -> str:
        """A page of the session that this address names."""
        return self.beside(path_values(self.request.path_params)["session"], page, **query)

    def beside(self, session: str, page: str = "", **query: str) -> str:
        """The same of another session of that user and agent."""
        return self.beside_agent(path_values(self.request.path_params)["agent"], session, page, **query)

    def beside_agent(self, agent: str, session: str, page: str = "", **query: str) -> str:
        """The same of another agent's."""
        below = f"/{page}" if page else ""
        asked = urlencode({**query, **self.whose})
        named = f"{quote(agent, safe='')}/{quote(session, safe='')}"
        return f"{self.home}/s/{named}{below}{'?' if asked else ''}{asked}"
