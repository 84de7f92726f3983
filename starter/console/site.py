"""The console's routes: who is let in, forms that are its own, headers that let nothing run, and problems as pages."""

from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longhaul.starter.console import about, call_pages, change_page, changes, pages, run_picture, session_page
from longhaul.starter.console.console_request import PATH, Entrance, Filled, Visit, read_form
from longhaul.starter.serve.problems import Problem, problem_of
from longhaul.starter.serve.requests import Served

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    # Without its origin a form of our own would look like another page's.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="{ground}"/>'
    '<text x="16" y="23" font-family="sans-serif" font-size="{size}" font-weight="700" text-anchor="middle" '
    'fill="#fff">{text}</text></svg>'
)
MOST_COUNTED = 99
STATIC = {"console.js": "text/javascript", "console.css": "text/css", "inter.woff2": "font/woff2"}

Handler = Callable[[Visit], Awaitable[ASGIApp]]
S = PATH + "/s/{agent}/{session}"
LOOKED_AT: dict[str, Handler] = {
    PATH: pages.inbox,
    f"{PATH}/sessions": pages.sessions,
    f"{PATH}/workers": pages.workers,
    f"{PATH}/start": pages.start,
    S: session_page.session,
    f"{S}/call": call_pages.call,
    f"{S}/calls": call_pages.calls,
    f"{S}/edit": changes.edit,
    f"{S}/about": about.about,
    f"{S}/run": run_picture.run,
    f"{S}/timeline": about.timeline,
    f"{S}/context": about.context,
    f"{S}/log": about.events,
    f"{S}/change": change_page.change,
    f"{S}/state": change_page.export,
    f"{S}/events": session_page.events,
}
FILLED_IN: dict[str, Handler] = {
    f"{PATH}/start": changes.begin,
    f"{S}/decide": changes.decide,
    f"{S}/calls": changes.decide_all,
    f"{S}/edit": changes.decide_edited,
    f"{S}/result": changes.hand_in,
    f"{S}/answer": changes.answer,
    f"{S}/say": changes.say,
    f"{S}/stop-background": changes.stop,
    **{f"{S}/{name}": changes.send(name) for name in changes.SENT},
    **{f"{S}/change/{name}": change_page.filled_in(name) for name in change_page.FORMS},
}


def routes(served: Served) -> list[Route]:
    """All of the console, for the application that serves the sessions."""
    entrance = Entrance(served)
    entries = {path: _Pages(served, entrance, LOOKED_AT.get(path), FILLED_IN.get(path)) for path in
               sorted({*LOOKED_AT, *FILLED_IN})}  # fmt: skip
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
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
            await answer(scope, receive, sending)
        except ClientDisconnect:
            return
        except Exception as error:
            if started:
                raise
            answer = await self._answer_problem(request, problem_of(error))
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

    async def _answer_problem(self, request: Request, problem: Problem) -> Response:
        if problem.kind == "unauthorized":
            if request.method == "POST" or request.scope["path"].endswith("/events"):
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
        return await self._get(self._let_in(request, Filled({})))

    async def _filled_in(self, request: Request) -> ASGIApp:
        if self._post is None:
            return await super()._filled_in(request)
        visitor = self._entrance.visitor(request)
        filled = await read_form(request)
        self._entrance.check_form(visitor, filled.fields)
        return await self._post(self._let_in(request, filled))

    def _let_in(self, request: Request, filled: Filled) -> Visit:
        visitor = self._entrance.visitor(request)
        return Visit(self._served, request, visitor, filled.fields, self._entrance.has_login, filled.files)


class _SignIn(_Entry):
    async def _looked_at(self, request: Request) -> ASGIApp:
        if self._visit(request) is not None:
            return RedirectResponse(self._home, 303)
        return await pages.page("sign_in", None, home=self._home)

    async def _filled_in(self, request: Request) -> ASGIApp:
        token = (await read_form(request)).fields.get("token", "").strip()
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
        self._entrance.check_form(self._entrance.visitor(request), (await read_form(request)).fields)
        answer = RedirectResponse(f"{self._home}/sign-in", 303)
        self._entrance.forget(answer)
        return answer


class _Static(_Entry):
    """The script, the style sheet and the icon, for anybody."""

    async def _looked_at(self, request: Request) -> ASGIApp:
        name = request.path_params["name"]
        if name == "icon.svg":
            # The icon shows how many calls wait, where any does.
            waiting = request.query_params.get("waiting", "")
            count = int(waiting) if waiting.isascii() and waiting.isdigit() and len(waiting) < 10 else 0
            text = "L" if not count else str(count) if count <= MOST_COUNTED else f"{MOST_COUNTED}+"
            icon = ICON.format(ground="#a3242b" if count else "#0b5a8a", size=20 if len(text) < 3 else 15, text=text)
            return Response(icon, media_type="image/svg+xml")
        if name not in STATIC:
            raise Problem("not-found", "there is no such file")
        file = pages.FOLDER / "static" / name
        # A face never changes, and a page that waits for it would be drawn twice.
        kept = "max-age=604800" if name.endswith(".woff2") else "no-cache"
        return FileResponse(file, media_type=STATIC[name], headers={"Cache-Control": kept})
