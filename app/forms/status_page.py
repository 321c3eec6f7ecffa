"""The status page's schema (decision 12)."""

from __future__ import annotations

from typing import Any

from app import records
from app.forms.fields import Number, Options, Password, Switch, Text, WordChoice, Zone
from app.forms.lists import IdList
from app.forms.page_lists import GroupList, NameList
from app.forms.schema import SchemaForm, defaults_of
from app.i18n import N_, _
from app.rules import colours, images, slugs
from app.rules.url import check_link, host_name

NOT_ON_PAGE = N_("This monitor is not on the page. Send it in monitors too.")
PASSWORD_NEEDED = N_("Enter a password for this page.")


class Domain(Text):
    """A host name, stored as browsers send it: in lower case and IDNA."""

    def read(self, value: str) -> str:
        return host_name(super().read(value))


class Colour(Text):
    """A colour such as ``#2b59c3``, in upper or lower case."""

    def read(self, value: str) -> str:
        return colours.read_colour(super().read(value))


class Image(Text):
    """An image in base64, which is never returned."""

    def read(self, value: str) -> str:
        return images.read_base64(super().read(value))


@defaults_of(records.StatusPage)
class StatusPageForm(SchemaForm):
    """What the public sees of some monitors."""

    name = Text(N_("Name"), required=True, limit=records.MAX_NAME)
    slug = Text(
        N_("Address"), limit=records.MAX_SLUG, rule=slugs.check,
        description=N_(
            "The last part of the page's address. Leave empty to derive it from the name."
        ),
    )  # fmt: skip
    description = Text(N_("Description"), limit=records.MAX_PAGE_DESCRIPTION)
    visibility = WordChoice(
        N_("Visible"),
        {
            records.Visibility.PUBLIC: N_("To everyone, and listed at /status"),
            records.Visibility.UNLISTED: N_("To everyone who has the link"),
            records.Visibility.PASSWORD: N_("To everyone who has the password"),
            records.Visibility.CLOSED: N_("To people with an account"),
        },
    )
    password: Any = Password(
        N_("Password"), limit=records.MAX_CREDENTIAL,
        description=N_("Required if visitors need a password."),
    )  # fmt: skip
    domain = Domain(
        N_("Custom domain"),
        limit=4 * records.MAX_DOMAIN,  # an international name may get longer in IDNA
        description=N_("A host name for this page alone, such as status.example.com."),
    )
    monitors = IdList(
        N_("Monitors"), limit=records.MAX_PAGE_MONITORS,
        description=N_("In the order in which the page shows them."),
    )  # fmt: skip
    names = NameList(
        N_("Names"), description=N_("Names that the page shows in place of the monitors' own.")
    )
    groups = GroupList(N_("Groups"), description=N_("Monitors below a common heading."))
    show_urls = Switch(N_("Show URLs"))
    show_response_times = Switch(N_("Show response times"))
    auto_post_after = Number(
        N_("Automatic post after (minutes)"), records.AUTO_POST_MINUTES,
        description=N_(
            "Post about an incident that has been open for this long. Leave empty for never."
        ),
    )  # fmt: skip
    zone = Zone(
        N_("Time zone"),
        description=N_(
            "Where the page's days begin. Browsers without JavaScript show times in it."
        ),
    )
    theme = WordChoice(
        N_("Colours"),
        {
            records.PageTheme.SYSTEM: N_("Reader's system setting"),
            records.PageTheme.LIGHT: N_("Light"),
            records.PageTheme.DARK: N_("Dark"),
        },
    )
    accent = Colour(
        N_("Accent colour"), limit=100,
        description=N_(
            "The colour of links and buttons, such as #2b59c3. Where a text in it could not be"
            " read, the page makes it darker or lighter."
        ),
    )  # fmt: skip
    language = Options(
        N_("Language"), records.PAGE_LANGUAGES,
        description=N_(
            "The language of your names and texts. The page's own sentences are in English where"
            " Wakeful is not translated."
        ),
    )  # fmt: skip
    home_url = Text(
        N_("Home page"), limit=records.MAX_URL, rule=check_link,
        description=N_("A URL that the logo and a link at the top of the page lead to."),
    )  # fmt: skip
    footer = Text(
        N_("Line at the foot"), limit=records.MAX_FOOTER,
        description=N_("A line of your own below the page. URLs become links."),
    )  # fmt: skip
    logo: Any = Image(
        N_("Logo"), lines=True,
        description=N_(
            "An image in base64: PNG, JPEG, GIF, WebP, ICO or SVG, up to 100 KB. Never returned."
        ),
    )  # fmt: skip
    favicon: Any = Image(
        N_("Favicon"), lines=True, description=N_("The icon of the page's tab, as the logo.")
    )

    def check_cross_field(self) -> None:
        self._check_password()
        if self.flawless(self.monitors) and not self.monitors.entry_errors:
            self._check_on_page(set(self.monitors.data))

    def _check_password(self) -> None:
        visibility, password = self.visibility, self.password
        keeps_stored = getattr(self.record, "password_set", False) and not password.sent
        if (
            not self.flawless(visibility, password)
            or visibility.data != records.Visibility.PASSWORD
        ):
            return
        if not keeps_stored and password.data is None:
            password.add_fault(_(PASSWORD_NEEDED))

    def _check_on_page(self, on_page: set[int]) -> None:
        """Check that the monitors of names and groups are on the page. If names or groups are not
        sent, the store removes the monitors that are no longer on the page from them.
        """
        if self.names.sent:
            for row, id in list(self.names.rows_with_ids()):
                if id not in on_page:
                    row.errors["key"].append(_(NOT_ON_PAGE))
        if self.groups.sent:
            for group, index, id in list(self.groups.valid_rows()):
                if id not in on_page:
                    group.errors[f"monitors.{index}"] = _(NOT_ON_PAGE)
