"""The resources of Wakeful, each described once.

The audit log, the API and its document, remote stores, ``wakeful doctor`` and error sentences read
the names of a resource from here. The API gives a resource the operations that ``about`` describes.
CONTRIBUTING.md lists what else a new resource needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.i18n import N_
from app.records.alerts import Delivery
from app.records.contacts import Contact, ReportMail
from app.records.incidents import Incident
from app.records.locations import Place
from app.records.monitors import Monitor
from app.records.status_pages import PostTemplate, StatusPage
from app.records.windows import MaintenanceWindow, Marker


class ObjectKind(StrEnum):
    """The kinds of objects in the audit log."""

    MONITOR = "monitor"
    INCIDENT = "incident"
    CONTACT = "contact"
    STATUS_PAGE = "status_page"
    POST = "post"
    POST_TEMPLATE = "post_template"
    SUBSCRIBERS = "subscribers"
    WINDOW = "window"
    MARKER = "marker"
    REPORT_MAIL = "report_mail"
    DELIVERY = "delivery"
    LOCATION = "location"
    PERSON = "person"
    SESSION = "session"
    SECOND_FACTOR = "second_factor"
    INVITATION = "invitation"
    RECOVERY_LINK = "recovery_link"
    KEY = "key"
    WALL_LINK = "wall_link"
    SETTING = "setting"
    INSTALLATION = "installation"
    AUDIT_LOG = "audit_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """``title``: its heading in the audit log; ``singular``, ``plural``: its records in sentences.
    ``table``: its table in the database. ``named_by``: the attribute with the name of a row.
    ``mend``: how a person replaces a damaged value. ``by_row``: whether each change of a row gets a
    line in the audit log automatically; otherwise the code that writes the rows adds a line.

    ``record``: the class of its records; ``answer``: the name of their schema (default: the class's
    name); ``tag``: a sentence about its operations in the API's document; ``about``: the
    description of each operation: ``list``, ``create``, ``show``, ``update`` (PUT and PATCH),
    ``delete``. ``name``: the name of its collection in a store and of its blueprint in the
    dashboard.
    """

    kind: ObjectKind
    title: str
    singular: str = ""
    plural: str = ""
    table: str = ""
    named_by: str | None = "name"
    by_row: bool = True
    mend: str = ""
    name: str = ""
    record: type | None = None
    answer: str = ""
    tag: str = ""
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.table)
        object.__setattr__(self, "plural", self.plural or self.table.replace("_", " "))

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"/{self.table.replace('_', '-')}"

    @property
    def schema(self) -> str:
        """The name of a record in the API's document."""
        return self.answer or (self.record.__name__ if self.record else "")


MONITORS = Resource(
    kind=ObjectKind.MONITOR,
    title=N_("Monitor"),
    singular=N_("monitor"),
    table="monitors",
    mend=N_("Edit the monitor and enter it again, or remove it."),
    record=Monitor,
    tag="URLs that are watched, their results and figures.",
    about={
        "list": "Secrets are masked for a key that may only read; the password is never returned.",
        "create": "The scheme of `url` decides the kind. The first check is made at once.",
        "show": "With its present status, and its uptime over four ranges.",
        "update": "Changes what is sent. `request_headers` and `alerts` replace the whole list. A"
        " masked value keeps the stored one. With another origin in `url`, or with `verify_tls`"
        " turned off, stored secrets that are not sent again are dropped. `pause=true` ends an"
        " open incident; with `pause=false` checks go on at once.",
        "delete": "Its incidents, results and pending deliveries go with it, and it leaves every"
        " status page. Nobody is notified, but a service that has an alert for each incident is"
        " sent its end.",
    },
)
INCIDENTS = Resource(
    kind=ObjectKind.INCIDENT,
    title=N_("Incident"),
    singular=N_("incident"),
    table="incidents",
    named_by="cause",
    mend=N_(
        "The incident is kept without its evidence. To remove this warning, delete the incident."
    ),
    record=Incident,
    tag="Periods of trouble of a monitor.",
    about={
        "list": "Sorted by the end, descending, the open ones come first.",
        "create": "Reports an incident by hand. Stored open, it alerts like an automatic one. It"
        " ends by hand, by a pause or with its monitor. If the monitor has an open incident, the"
        " answer is 409, with its id in `open_incident_id`.",
        "show": "With what the failing check saw, in `evidence`.",
        "delete": "The time that it covered counts as up again.",
    },
)
CONTACTS = Resource(
    kind=ObjectKind.CONTACT,
    title=N_("Contact"),
    singular=N_("contact"),
    table="contacts",
    mend=N_("Nobody is alerted through it. Edit the contact and enter its channels again."),
    record=Contact,
    tag="Names for channels that several monitors use.",
    about={
        "list": "Channel values are masked for a key that may only read.",
        "create": "A contact is a name for channels that several monitors use.",
        "show": "Channel values are masked for a key that may only read.",
        "update": "Changes what is sent, for every monitor that uses the contact. A masked channel"
        " value keeps the stored one.",
    },
)
STATUS_PAGES = Resource(
    kind=ObjectKind.STATUS_PAGE,
    title=N_("Status page"),
    singular=N_("status page"),
    table="status_pages",
    mend=N_(
        "Edit the page and choose its visibility again. "
        "Until then, only people with an account see it."
    ),
    record=StatusPage,
    tag="Pages for the public, their posts and subscribers.",
    about={
        "list": "Each with its present state.",
        "create": "The page is there at once, at the address in `link`.",
        "show": "`state` is the worst of its monitors' confirmed states, or of its open posts.",
        "update": "Changes what is sent. Taking a monitor off the page takes it out of names,"
        " groups and posts too.",
        "delete": "Its posts and subscribers go with it, and its address answers 404.",
    },
)
POSTS = Resource(
    kind=ObjectKind.POST,
    title=N_("Post"),
    singular=N_("post"),
    table="posts",
    named_by="title",
    mend=N_("Correct the post, or delete it."),
)
POST_TEMPLATES = Resource(
    kind=ObjectKind.POST_TEMPLATE,
    title=N_("Post template"),
    singular=N_("post template"),
    table="post_templates",
    mend=N_("Edit the template and save it again, or delete it."),
    record=PostTemplate,
    tag="Posts to start from.",
    about={
        "list": "Texts that people start a post from.",
        "create": "Its title, state and body fill in the form of a new post.",
        "show": "Returns one template.",
        "update": "Changes what is sent. Posts that were made from it stay as they are.",
        "delete": "Posts that were made from it stay as they are.",
    },
)
SUBSCRIBERS = Resource(
    kind=ObjectKind.SUBSCRIBERS,
    title=N_("Subscribers"),
    singular=N_("subscriber"),
    table="subscribers",
    named_by=None,
    by_row=False,
    mend=N_("Nothing is sent to this subscriber. Subscribing again fixes it."),
)
WINDOWS = Resource(
    kind=ObjectKind.WINDOW,
    title=N_("Maintenance"),
    singular=N_("maintenance window"),
    table="maintenance_windows",
    mend=N_("The window does not apply. Edit it and save it again, or delete it."),
    name="windows",
    record=MaintenanceWindow,
    tag="Times in which no incident opens and nobody is alerted.",
    about={
        "list": "Windows for one monitor, set on the monitor itself, are not among them.",
        "create": "During a window, checks continue, but no incident opens and nobody is alerted.",
        "show": "Returns the window as it was stored, with the time of its first occurrence.",
        "update": "Changes what is sent. A change counts for the occurrence that is on.",
        "delete": "Ends the window, also while it is on. Past figures keep leaving its time out.",
    },
)
MARKERS = Resource(
    kind=ObjectKind.MARKER,
    title=N_("Marker"),
    singular=N_("marker"),
    table="markers",
    mend=N_("Edit the marker through the API, or delete it."),
    record=Marker,
    tag="Deploys and other moments that charts show.",
    about={
        "list": "The newest first.",
        "create": "Marks a moment, such as a deploy, on the charts of its monitors.",
        "show": "Returns one marker.",
        "update": "Changes what is sent.",
        "delete": "Takes the marker off the charts.",
    },
)
REPORT_MAILS = Resource(
    kind=ObjectKind.REPORT_MAIL,
    title=N_("Monthly report"),
    singular=N_("monthly report"),
    plural="monthly reports",
    table="report_mails",
    named_by="tag",
    mend=N_("Delete the monthly report and set it up again."),
    record=ReportMail,
    tag="Monthly reports by email.",
    about={
        "list": "Who gets a report by email each month.",
        "create": "Sends a contact the report of each month when it is over.",
        "show": "Returns one monthly report.",
        "update": "Changes what is sent.",
        "delete": "Sends this report no more.",
    },
)
DELIVERIES = Resource(
    kind=ObjectKind.DELIVERY,
    title=N_("Message"),
    singular=N_("delivery"),
    table="deliveries",
    named_by=None,
    by_row=False,
    mend=N_("Nothing to do: it is deleted when it is old enough."),
    record=Delivery,
    tag="Messages to people, sent or failed.",
)
LOCATIONS = Resource(
    kind=ObjectKind.LOCATION,
    title=N_("Place"),
    singular=N_("place"),
    plural="places",
    table="locations",
    mend=N_("Edit the place and save it again."),
    record=Place,
    answer="Location",
    tag="Places that checks run from.",
    about={
        "list": "`default`, the place of the server itself, is always there, and first.",
        "create": "With the carrier `agent`, which needs a key of scope `admin`, the answer has the"
        " agent's `token`, this once. A checker that starts under a new name adds its place.",
        "show": "Its `state`, and what the checkers, the probers or the agent there said of"
        " themselves last.",
        "update": "The name cannot be changed. Another carrier needs a key of scope `admin`. It"
        " ends the token of an agent, and a place that becomes an agent's gets one by"
        " `POST /locations/{id}/token`. `default` cannot be an agent's.",
        "delete": "If monitors are checked from it, the answer is 409, with their ids in"
        " `monitors`; also if a checker runs there. `default` is never deleted.",
    },
)
PEOPLE = Resource(
    kind=ObjectKind.PERSON,
    title=N_("Person"),
    singular=N_("person"),
    table="people",
    named_by="email",
    mend=N_(
        "An admin can set it on the People page. If no admin is left, create one:"
        " wakeful user create EMAIL --role admin"
    ),
)
INVITATIONS = Resource(
    kind=ObjectKind.INVITATION,
    title=N_("Invitation"),
    singular=N_("invitation"),
    table="invitations",
    named_by="email",
    by_row=False,
    mend=N_("It invites a viewer. Revoke it on the People page, and invite again."),
)
KEYS = Resource(
    kind=ObjectKind.KEY, title=N_("API key"), singular=N_("key"), table="api_keys", named_by="label"
)
WALL_LINKS = Resource(
    kind=ObjectKind.WALL_LINK, title=N_("Link to the wall"), singular=N_("link"), table="wall_links"
)
RESOURCES = (
    MONITORS, INCIDENTS, CONTACTS, STATUS_PAGES, POSTS, POST_TEMPLATES, SUBSCRIBERS, WINDOWS,
    MARKERS, REPORT_MAILS, DELIVERIES, LOCATIONS, PEOPLE,
    Resource(kind=ObjectKind.SESSION, title=N_("Session"), singular=N_("session")),
    Resource(kind=ObjectKind.SECOND_FACTOR, title=N_("Second factor")),
    INVITATIONS,
    Resource(kind=ObjectKind.RECOVERY_LINK, title=N_("Link for a new password")),
    KEYS, WALL_LINKS,
    Resource(kind=ObjectKind.SETTING, title=N_("Setting")),
    Resource(kind=ObjectKind.INSTALLATION, title=N_("Installation")),
    Resource(kind=ObjectKind.AUDIT_LOG, title=N_("Audit log")),
)  # fmt: skip
BY_TABLE: Mapping[str, Resource] = {
    resource.table: resource for resource in RESOURCES if resource.table
}
