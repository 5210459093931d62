"""Read-only HTTP application of the dashboard, for this machine and whoever has the token."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from strop.errors import StropError
from strop.observe.dashboard.compare_page import compare
from strop.observe.dashboard.curves_page import curves
from strop.observe.dashboard.now_page import now
from strop.observe.dashboard.page_frame import STATIC, framed, style
from strop.observe.dashboard.page_model import PageQuery, Pages, WatchPage
from strop.observe.dashboard.pass_rates_page import curriculum
from strop.observe.dashboard.rollout_detail_page import rollout
from strop.observe.dashboard.rollouts_list import rollouts
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.dashboard.runs_page import runs
from strop.observe.dashboard.summary_page import summary
from strop.observe.report.layout import SCRIPT
from strop.observe.report.templates import visible
from strop.workers.host_names import HostNames
from strop.workers.http_connection import let_in

_NAMES = HostNames()  # of this machine alone
_HEADERS = {
    # styles of single elements are widths and colours that the server computed
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; img-src data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PAGES: Pages = {
    "": runs,
    "now": now,
    "curves": curves,
    "rollouts": rollouts,
    "rollout": rollout,
    "curriculum": curriculum,
    "summary": summary,
    "compare": compare,
}


@dataclass
class WatchApp:
    """Pages over the runs of a folder."""

    run_index: RunIndex
    token: str

    def starlette(self) -> Starlette:
        files = {
            "style.css": (style(), "text/css"),
            "charts.js": (SCRIPT, "text/javascript"),
            "watch.js": ((STATIC / "watch.js").read_text(), "text/javascript"),
        }
        routes = [Route(f"/static/{name}", _constant(*each)) for name, each in files.items()]
        routes += [Route(f"/{name}", self._answered(name)) for name in PAGES]
        return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=self._guarded)])

    async def _guarded(self, request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        """Whoever comes by another name or without the token learns nothing; the token leaves the address at once."""
        if not _NAMES.know(request.headers.get("host", "")):
            answer: Response = PlainTextResponse("this page is served to this machine alone", 403)
        elif self._is_known(request.query_params.get("token", "")):
            let_in(request.scope)
            rest = urlencode([pair for pair in request.query_params.multi_items() if pair[0] != "token"])
            answer = RedirectResponse(f"{request.url.path}?{rest}" if rest else request.url.path, 303)
            answer.set_cookie(self._cookie, self.token, httponly=True, samesite="strict")
        elif self._is_known(request.cookies.get(self._cookie, "")):
            let_in(request.scope)
            answer = await go_on(request)
        else:
            answer = PlainTextResponse("open the address that strop watch printed: it holds the token", 401)
        answer.headers.update(_HEADERS)
        return answer

    def _is_known(self, told: str) -> bool:
        return secrets.compare_digest(told.encode(), self.token.encode())

    @property
    def _cookie(self) -> str:
        """Of this server: those of one host are shared by all its ports."""
        return f"strop-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    def _answered(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            return await run_in_threadpool(self._answer, name, request)

        return answered

    def _answer(self, name: str, request: Request) -> Response:
        """A page, the part of it that changes, or 304 where that would be the same."""
        asked = PageQuery()
        for key, value in request.query_params.multi_items():
            asked.setdefault(key, []).append(value)
        try:
            page = PAGES[name](self.run_index, asked)
            if request.headers.get("if-none-match") == page.tag:
                return Response(status_code=304)
            body = page.body()
        except StropError as error:
            return self._failed(name, request, str(error), 404)
        except sqlite3.Error as error:
            return self._failed(name, request, f"the ledger cannot be read now: {error}", 503)
        text = body if "x-part" in request.headers else framed(self.run_index, page, name, body)
        return HTMLResponse(text.encode(errors="replace"), headers={"ETag": page.tag})

    def _failed(self, name: str, request: Request, told: str, status: int) -> Response:
        """What is wrong, on a page with the navigation of all others."""
        if "x-part" in request.headers:
            return PlainTextResponse(told, status)
        body = Markup("<h1>Not there</h1><p>{}</p>").format(visible(told))
        page = WatchPage("not there", "", lambda: body)
        return HTMLResponse(framed(self.run_index, page, name, body), status)


def _constant(text: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        return Response(text, media_type=kind)

    return answered
