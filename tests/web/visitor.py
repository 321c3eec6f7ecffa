"""A visitor whose browser runs no scripts: reads pages, fills in their forms and presses their
buttons. It can send only what a form offers.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

import pytest
from flask import Flask
from jinja2 import Template
from werkzeug.test import TestResponse

from app.records import Person
from app.web.frame import session
from tests.factories import PASSWORD

# Whatever may be an element's id, and more: text that looks like one.
IDS = re.compile(r"""[\s"'/][iI][dD]\s*=\s*["']?([^\s"'>]*)""")
# Time zones: hundreds of options, which html.parser reads more slowly than the rest of the page.
OPTION = r'<option value="([^"]*)">([^<]*)</option>'
OPTIONS = re.compile(f"(?:{OPTION.replace('(', '(?:')}){{9,}}")


@dataclass
class Form:
    action: str
    method: str
    values: list[tuple[str, str]] = field(default_factory=list)
    boxes: dict[str, str] = field(default_factory=dict)  # all checkboxes, ticked or not
    choices: dict[str, list[str]] = field(default_factory=dict)
    buttons: list[tuple[str, str | None, str | None]] = field(
        default_factory=list
    )  # text, name, value

    def names(self) -> set[str]:
        return {name for name, _ in self.values} | set(self.boxes)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.text: list[str] = []
        self.ids: list[str] = []
        self.runs: list[list[tuple[str, str]]] = []  # options in a row: values and texts
        self._form: Form | None = None
        self._select: str | None = None
        self._picked: str | None = None
        self._option: list[str] | None = None
        self._area: tuple[str, list[str]] | None = None
        self._button: list[str] | None = None
        self._silent = 0

    def read(self, page: str) -> None:
        self.feed(OPTIONS.sub(self._take_out, page))

    def _take_out(self, run: re.Match[str]) -> str:
        options = re.findall(OPTION, run[0])
        self.runs.append([(html.unescape(value), html.unescape(text)) for value, text in options])
        return f"<options number={len(self.runs) - 1}>"

    def handle_starttag(self, tag, attrs):
        at = {name: value if value is not None else "" for name, value in attrs}
        if "id" in at:
            self.ids.append(at["id"])
        if tag in ("script", "style", "svg", "template"):
            self._silent += 1
        if tag == "options":
            self.text += [text for _, text in self.runs[int(at["number"])]]
        if tag == "form":
            self._form = Form(at.get("action", ""), at.get("method", "get"))
            self.forms.append(self._form)
        form = self._form
        if form is None:
            return
        if tag == "input" and "name" in at:
            kind = at.get("type", "text")
            if kind in ("checkbox", "radio"):
                form.boxes[at["name"]] = at.get("value", "on")
                if "checked" in at:
                    form.values.append((at["name"], at.get("value", "on")))
            else:
                form.values.append((at["name"], at.get("value", "")))
        elif tag == "select":
            self._select, self._picked = at["name"], None
            form.choices[at["name"]] = []
        elif tag == "options" and self._select:
            values = [value for value, _ in self.runs[int(at["number"])]]
            form.choices[self._select] += values
            self._picked = values[0] if self._picked is None else self._picked
        elif tag == "option":
            self._option = [at.get("value", "\0"), "1" if "selected" in at else "", ""]
        elif tag == "textarea":
            self._area = (at["name"], [])
        elif tag == "button":
            self._button = [at.get("name", ""), at.get("value", ""), ""]

    def handle_endtag(self, tag):
        if tag in ("script", "style", "svg", "template"):
            self._silent -= 1
        form = self._form
        if form is None:
            return
        if tag == "option" and self._option and self._select:
            value = self._option[2].strip() if self._option[0] == "\0" else self._option[0]
            form.choices[self._select].append(value)
            if self._option[1] or self._picked is None:
                self._picked = value
            self._option = None
        elif tag == "select" and self._select:
            if self._picked is not None:
                form.values.append((self._select, self._picked))
            self._select = None
        elif tag == "textarea" and self._area:
            # A browser drops the first line break and sends the others as CRLF.
            text = "".join(self._area[1]).replace("\r\n", "\n").removeprefix("\n")
            text = text.replace("\n", "\r\n")
            form.values.append((self._area[0], text))
            self._area = None
        elif tag == "button" and self._button:
            name, value, text = self._button
            form.buttons.append((" ".join(text.split()), name or None, value))
            self._button = None
        elif tag == "form":
            self._form = None

    def handle_data(self, data):
        if self._option:
            self._option[2] += data
        if self._area:
            self._area[1].append(data)
        if self._button:
            self._button[2] += data
        if not self._silent:
            self.text.append(data)


class Visitor:
    """One browser. ``page`` is the last answer."""

    def __init__(self, app: Flask) -> None:
        self.client = app.test_client()
        self.page: TestResponse

    def open(self, address: str, **kwargs: object) -> Visitor:
        self._take(self.client.get(address, follow_redirects=True, **kwargs))
        return self

    def _take(self, page: TestResponse) -> None:
        self.page = page
        self.path = urlsplit(page.request.url).path
        self._read: _Reader | None = None
        ids = IDS.findall(self._html)
        if len(ids) > len(set(ids)):
            ids = self._reader.ids
            assert len(ids) == len(set(ids)), "an id stands twice on the page"

    @property
    def _html(self) -> str:
        return self.page.text if self.page.mimetype == "text/html" else ""

    @property
    def _reader(self) -> _Reader:
        """The reader of the page, made once somebody asks: it takes longer than many pages do."""
        if self._read is None:
            self._read = _Reader()
            self._read.read(self._html)
        return self._read

    @property
    def forms(self) -> list[Form]:
        return self._reader.forms

    @property
    def text(self) -> str:
        """The text that a person reads on it."""
        return " ".join(" ".join(self._reader.text).split())

    @property
    def status(self) -> int:
        return self.page.status_code

    def shows(self, *texts: str, status: int | None = None) -> Visitor:
        """The page has each of these texts, and is an answer with this status."""
        assert status in (None, self.status), f"{self.path} answered {self.status}"
        missing = [text for text in texts if text not in self.text]
        assert not missing, f"{self.path} lacks {missing}: {self.text}"
        return self

    def shows_in_order(self, *texts: str) -> Visitor:
        assert sorted(texts, key=self.text.index) == list(texts), self.text
        return self

    def hides(self, *texts: str) -> Visitor:
        present = [text for text in texts if text in self.text]
        assert not present, f"{self.path} shows {present}: {self.text}"
        return self

    def form_with(self, button: str) -> tuple[Form, tuple[str, str | None, str | None]]:
        for form in self.forms:
            for pressed in form.buttons:
                if pressed[0] == button:
                    return form, pressed
        names = [pressed[0] for form in self.forms for pressed in form.buttons]
        raise AssertionError(f"no button {button!r}, but {names}")

    def press(
        self, button: str, _value: str | None = None, _follow: bool = True, **fields: object
    ) -> Visitor:
        """Fill the form with that button and send it. True and False tick and untick boxes. A field
        that stands in the form several times under one name is sent several times.
        """
        form, (_, name, value) = self.form_with(button)
        values: dict[str, str | list[str]] = {
            key: [text for other, text in form.values if other == key] for key, _ in form.values
        }
        for key, typed in fields.items():
            assert key in form.names(), f"no field {key!r}, but {sorted(form.names())}"
            if typed is False:
                values.pop(key, None)
            elif isinstance(typed, list):  # what is ticked under this name
                hidden = [text for text in values.get(key, []) if not text]
                values[key] = [*hidden, *map(str, typed)]
            else:
                values[key] = form.boxes[key] if typed is True else str(typed)
            if key in form.choices:
                assert values[key] in form.choices[key], f"{key} offers {form.choices[key]}"
        if name:
            values[name] = _value or value or ""
        target = form.action or self.page.request.url
        send = self.client.post if form.method == "post" else self.client.get
        if form.method != "post":
            target = target.partition("?")[0]  # as browsers do
        data = {"data" if form.method == "post" else "query_string": values}
        origin = {"Origin": "http://localhost"} if form.method == "post" else {}
        self._take(send(html.unescape(target), follow_redirects=_follow, headers=origin, **data))
        return self

    def log_in(self, email: str, password: str = PASSWORD) -> Visitor:
        """The page that comes next is not opened: few tests look at it."""
        return self.open("/login").press("Log in", _follow=False, email=email, password=password)

    def let_in(self, person: Person) -> Visitor:
        """Logged in as after the form, in a quarter of the time: for tests about what comes next.
        No page is open.
        """
        app = self.client.application
        with app.test_request_context("/login", environ_base=self.client.environ_base):
            session.begin(person)
            answer = app.process_response(app.response_class())
        for header in answer.headers.getlist("Set-Cookie"):
            for name, cookie in SimpleCookie(header).items():
                self.client.set_cookie(name, cookie.value)
        return self


@contextmanager
def blank_pages() -> Iterator[None]:
    """Views decide who is let in; what their templates show is read by other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Template, "render", lambda *args, **context: "")
        yield


def token(visitor: Visitor) -> dict[str, str]:
    """The token of the forms of the page that is open."""
    return {"csrf_token": dict(visitor.form_with("Log out")[0].values)["csrf_token"]}


def apply(visitor: Visitor, ids: list[int], action: str, **fields: object) -> Visitor:
    """Select these monitors on the list, choose what to do and press the button."""
    form, _ = visitor.open("/monitors?sort_by=name&sort=asc").form_with("Apply")
    assert "ids" in form.boxes or not ids
    assert action in form.choices["action"]
    values = {**dict(form.values), "action": action, "ids": ids, **fields}
    visitor._take(visitor.client.post(form.action, data=values, follow_redirects=True))
    return visitor
