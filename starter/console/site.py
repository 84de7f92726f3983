"""The console's routes: who is let in, forms that are its own, headers that let nothing run, and problems as pages."""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longhaul.starter.console import about, changes, edits, listing, pages, question_answers, steering
from longhaul.starter.console.visit import Visit
from longhaul.starter.console.visitor import PATH, Entrance
from longhaul.starter.serve.calls import Served
from longhaul.starter.serve.door import read_body
from longhaul.starter.serve.problems import Problem, problem_of

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    # Without its origin a form of our own would look like another page's.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
NO_STORE = (b"cache-control", b"no-store")
MOST_FIELDS = 60
STATIC = {"console.js": "text/javascript", "console.css": "text/css"}

Handler = Callable[[Visit], Awaitable[ASGIApp]]
S = PATH + "/s/{agent}/{session}"


def routes(served: Served) -> list[Route]:
    """All of the console, for the application that serves the sessions."""
    entrance = Entrance(served)
    looked_at: dict[str, Handler] = {
        PATH: pages.inbox,
        f"{PATH}/sessions": listing.sessions,
        f"{PATH}/start": pages.start,
        S: pages.session,
        f"{S}/call": pages.call,
        f"{S}/edit": edits.edit,
        f"{S}/about": about.about,
        f"{S}/timeline": about.timeline,
        f"{S}/change": steering.change,
        f"{S}/state": steering.export,
        f"{S}/events": pages.events,
    }
    filled_in: dict[str, Handler] = {
        f"{PATH}/start": changes.begin,
        f"{S}/decide": changes.decide,
        f"{S}/edit": edits.decide,
        f"{S}/result": changes.hand_in,
        f"{S}/answer": question_answers.answer,
        f"{S}/settle": changes.settle,
        f"{S}/say": changes.say,
        f"{S}/wake": changes.wake,
        **{f"{S}/{name}": changes.steer(name) for name in ("pause", "resume", "interrupt", "step")},
        **{f"{S}/change/{name}": steering.filled_in(name) for name in steering.FORMS},
    }
    entries = {path: _Pages(served, entrance, looked_at.get(path), filled_in.get(path)) for path in
               sorted({*looked_at, *filled_in})}  # fmt: skip
    return [
        Route(f"{PATH}/static/{{name}}", _Static(served, entrance)),
        Route(f"{PATH}/sign-in", _SignIn(served, entrance)),
        Route(f"{PATH}/sign-out", _SignOut(served, entrance)),
        *(Route(path, entry) for path, entry in entries.items()),
    ]


class _Entry:
    """What all addresses have in common: headers, and that what goes wrong is told as a page."""

    def __init__(self, served: Served, entrance: Entrance) -> None:
        self._served = served
        self._entrance = entrance
        self._home = served.root_path + PATH

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                kept = () if any(name.lower() == NO_STORE[0] for name, _ in own) else (NO_STORE,)
                message["headers"] = [*own, *HEADERS, *kept]
            await send(message)

        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
            await answer(scope, receive, sending)
        except ClientDisconnect:
            return
        except Exception as error:
            if begun:
                raise
            answer = await self._told(request, problem_of(error))
            await answer(scope, receive, sending)

    async def _answer(self, request: Request) -> ASGIApp:
        match request.method:
            case "GET" | "HEAD":
                return await self._looked_at(request)
            case "POST":
                self._entrance.check_origin(request)
                return await self._filled_in(request)
            case method:
                raise Problem("method", f"{method}: send GET or POST here", headers={"Allow": "GET, POST"})

    async def _looked_at(self, request: Request) -> ASGIApp:
        raise Problem("method", f"{request.method}: send POST here", headers={"Allow": "POST"})

    async def _filled_in(self, request: Request) -> ASGIApp:
        raise Problem("method", f"{request.method}: send GET here", headers={"Allow": "GET"})

    async def _told(self, request: Request, problem: Problem) -> Response:
        if problem.kind == "unauthorized":
            if request.method == "POST" or request.url.path.endswith("/events"):
                return await pages.problem_page(None, self._home, problem)
            return RedirectResponse(f"{self._home}/sign-in", 303)
        return await pages.problem_page(self._visit(request), self._home, problem)

    def _visit(self, request: Request) -> Visit | None:
        try:
            return Visit(self._served, request, self._entrance.visitor(request), {}, self._entrance.has_login)
        except Problem:
            return None


class _Pages(_Entry):
    """One address, for those who are signed in."""

    def __init__(self, served: Served, entrance: Entrance, get: Handler | None, post: Handler | None) -> None:
        super().__init__(served, entrance)
        self._get = get
        self._post = post

    async def _looked_at(self, request: Request) -> ASGIApp:
        if self._get is None:
            return await super()._looked_at(request)
        return await self._get(self._let_in(request, {}))

    async def _filled_in(self, request: Request) -> ASGIApp:
        if self._post is None:
            return await super()._filled_in(request)
        visitor = self._entrance.visitor(request)
        form = await _form(request)
        self._entrance.check_form(visitor, form)
        return await self._post(self._let_in(request, form))

    def _let_in(self, request: Request, form: dict[str, str]) -> Visit:
        return Visit(self._served, request, self._entrance.visitor(request), form, self._entrance.has_login)


class _SignIn(_Entry):
    async def _looked_at(self, request: Request) -> ASGIApp:
        if self._visit(request) is not None:
            return RedirectResponse(self._home, 303)
        return await pages.page("sign_in", None, home=self._home)

    async def _filled_in(self, request: Request) -> ASGIApp:
        token = (await _form(request)).get("token", "").strip()
        try:
            self._entrance.known(token)
        except Problem as problem:
            if problem.kind not in ("unauthorized", "forbidden"):
                raise
            told = "No such token is known here." if problem.kind == "unauthorized" else problem.detail
            return await pages.page("sign_in", None, problem.status, home=self._home, problem=told)
        answer = RedirectResponse(self._home, 303)
        self._entrance.remember(request, answer, token)
        return answer


class _SignOut(_Entry):
    async def _filled_in(self, request: Request) -> ASGIApp:
        self._entrance.check_form(self._entrance.visitor(request), await _form(request))
        answer = RedirectResponse(f"{self._home}/sign-in", 303)
        self._entrance.forget(answer)
        return answer


class _Static(_Entry):
    """The script and the style sheet, for anybody."""

    async def _looked_at(self, request: Request) -> ASGIApp:
        name = request.path_params["name"]
        if name not in STATIC:
            raise Problem("not-found", "there is no such file")
        file = pages.FOLDER / "static" / name
        return FileResponse(file, media_type=STATIC[name], headers={"Cache-Control": "no-cache"})


async def _form(request: Request) -> dict[str, str]:
    """Raises Problem."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Problem("media-type", f"Content-Type: {kind!r} is not read here; send a form")
    text = await read_body(request)
    try:
        fields = parse_qsl(text.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError as error:
        raise Problem("malformed", f"body: it is no form ({error})") from None
    if len({name for name, _ in fields}) < len(fields):
        raise Problem("malformed", "body: a field is there more than once; send it once")
    return {name: value.replace("\r\n", "\n") for name, value in fields}
