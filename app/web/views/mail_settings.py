"""Email settings: the mail server, and a test of it. For admins."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access.settings import SMTP_URL, mail_is_locked, mail_is_unreadable, smtp_url
from app.i18n import N_, _
from app.records import Role
from app.rules.smtp import Server, compose, parse
from app.stores import current_access, current_mail, current_settings
from app.web.forms import TLS_LABELS, MailServerForm, TestMailForm
from app.web.frame.editing import confirmed
from app.web.frame.session import Answer, guarded

blueprint = guarded("mail_settings", __name__, "/settings/email", Role.ADMIN)

REMOVED = N_("Email settings removed. No email is sent from now on.")


@blueprint.route("", methods=["GET", "POST"])
def show() -> Answer:
    form = _form()
    if not mail_is_locked(current_settings()) and form.validate_on_submit():
        current_access().settings.set(SMTP_URL, compose(form.server()))
        flash(_("Email settings saved. Send a test email to see whether they work."), "success")
        return redirect(url_for(".show", _anchor="test"))
    test = TestMailForm(formdata=None, data={"address": current_user.person.email})
    return _page(form, test, form.is_submitted())


@blueprint.post("/test")
def test() -> Answer:
    """Send a test mail once, without a retry; the page shows the answer of the mail server."""
    form = TestMailForm()
    if not form.validate_on_submit():
        return _page(_form(formdata=None), form, True)
    mail_answer = current_mail().send_test(form.address.data)
    notice = _("The test email was not sent. %(answer)s", answer=mail_answer.answer)
    if mail_answer.ok:
        to, answer = form.address.data, mail_answer.answer
        sentence = N_("Test email sent to %(address)s. The server said: %(answer)s")
        notice = _(sentence, address=to, answer=answer)
    flash(notice, "success" if mail_answer.ok else "error")
    return redirect(url_for(".show", _anchor="test"))


@blueprint.route("/remove", methods=["GET", "POST"])
def remove() -> str | Response:
    return confirmed(
        "settings/remove_email.html",
        lambda: current_access().settings.set(SMTP_URL, None),
        _(REMOVED),
        url_for(".show"),
    )


def _form(**more: Any) -> MailServerForm:
    server = _server_in_use()
    data = {} if server is None else {
        "host": server.host, "port": server.port, "tls": server.tls, "user": server.user,
        "sender": server.sender,
    }  # fmt: skip
    form = MailServerForm(data=data, **more)
    form.stored = server
    return form


def _page(form: MailServerForm, test: TestMailForm, failed: bool) -> tuple[str, int]:
    page = render_template(
        "settings/email.html",
        form=form,
        test=test,
        server=_server_in_use(),
        locked=mail_is_locked(current_settings()),
        unreadable=mail_is_unreadable(current_settings()),
        tls_labels={tls: _(label) for tls, label in TLS_LABELS.items()},
    )
    return page, 422 if failed else 200


def _server_in_use() -> Server | None:
    """The mail server in use; None if there is none that can be read."""
    url = smtp_url(current_settings())
    try:
        return None if url is None else parse(url)
    except ValueError:  # an invalid URL in the environment; each attempt to send says why
        return None
