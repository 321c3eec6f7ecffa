"""The status page's schema (decisions.md 12)."""

from __future__ import annotations

from typing import Any

from app.forms.fields import Number, Password, Switch, Text, Word, Zone
from app.forms.page_lists import GroupList, MonitorIds, NameList
from app.forms.schema import SchemaForm
from app.records import (
    AUTO_POST_MINUTES,
    DEFAULT_PAGE_ZONE,
    MAX_CREDENTIAL,
    MAX_DOMAIN,
    MAX_NAME,
    MAX_PAGE_DESCRIPTION,
    MAX_SLUG,
    PageTheme,
    Visibility,
)
from app.rules import slugs
from app.rules.url import host_name

NOT_ON_PAGE = "This monitor is not on the page. Send it in monitors too."
PASSWORD_NEEDED = "Enter a password for this page."  # noqa: S105 (a sentence)


class Domain(Text):
    """A host name, kept as browsers send it: in small letters and, where it is international, in
    its form of ASCII characters.
    """

    def read(self, value: str) -> str:
        return host_name(super().read(value))


class StatusPageForm(SchemaForm):
    """What the public sees of some monitors."""

    name = Text("Name", required=True, most=MAX_NAME)
    slug = Text(
        "Address",
        most=MAX_SLUG,
        rule=slugs.check,
        description="The last part of the page's address. Empty: made from the name.",
    )
    description = Text("Description", most=MAX_PAGE_DESCRIPTION)
    visibility = Word(
        "Visible",
        words=Visibility,
        labels={
            Visibility.PUBLIC: "To everyone, and listed at /status",
            Visibility.UNLISTED: "To everyone who has the link",
            Visibility.PASSWORD: "To everyone who has the password",
            Visibility.CLOSED: "To people with an account",
        }.__getitem__,
        default=Visibility.PUBLIC,
    )
    password: Any = Password(
        "Password", most=MAX_CREDENTIAL, description="Required if visitors need a password."
    )
    domain = Domain(
        "Custom domain",
        most=4 * MAX_DOMAIN,  # an international one is longer as bytes than as characters
        description="A host name for this page alone, such as status.example.com.",
    )
    monitors = MonitorIds("Monitors", description="In the order in which the page shows them.")
    names = NameList(
        "Names", description="Names that the page shows in place of the monitors' own."
    )
    groups = GroupList("Groups", description="Monitors below a common heading.")
    show_urls = Switch("Show URLs", default=False)
    show_response_times = Switch("Show response times", default=False)
    auto_post_after = Number(
        "Automatic post after (minutes)",
        low=AUTO_POST_MINUTES[0],
        high=AUTO_POST_MINUTES[1],
        description="Post about an incident that has been open for this long. Empty: never.",
    )
    zone = Zone(
        "Time zone",
        default=DEFAULT_PAGE_ZONE,
        description="Where the page's days begin. Browsers without JavaScript show times in it.",
    )
    theme = Word(
        "Colours",
        words=PageTheme,
        labels={
            PageTheme.SYSTEM: "Reader's system setting",
            PageTheme.LIGHT: "Light",
            PageTheme.DARK: "Dark",
        }.__getitem__,
        default=PageTheme.SYSTEM,
    )

    def check_together(self) -> None:
        self._check_password()
        if self.flawless(self.monitors) and not self.monitors.entry_errors:
            self._check_on_page(set(self.monitors.data))

    def _check_password(self) -> None:
        visibility, password = self.visibility, self.password
        stored = getattr(self.record, "password_set", False) and not password.sent
        if not self.flawless(visibility, password) or visibility.data != Visibility.PASSWORD:
            return
        if not stored and password.data is None:
            password.fault(PASSWORD_NEEDED)

    def _check_on_page(self, known: set[int]) -> None:
        """Names and groups that are not sent follow the monitors: the store takes them out."""
        if self.names.sent:
            for row, id in list(self.names.keyed()):
                if id not in known:
                    row.key_errors.append(NOT_ON_PAGE)
        if self.groups.sent:
            for group, index, id in list(self.groups.sound()):
                if id not in known:
                    group.errors[f"monitors.{index}"] = NOT_ON_PAGE
