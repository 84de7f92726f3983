"""Visitors of the console: a token in a cookie that no script reads, and the proof that a form is the console's own.

Nothing is kept here. The cookie holds the token itself, so that a line taken out of the file of tokens ends what its
owner sees; and what every form carries is derived from it, so that any server takes what another one has shown.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from longhaul.starter.serve.host_names import is_own
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.request_checks import caller_of
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import Caller

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
