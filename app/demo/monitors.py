"""The demonstration's monitors, as a person would have typed them, each with its past."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from app.demo.history import Past, PastOutage
from app.demo.targets import Targets

Pairs = list[tuple[str, str]]

# The checks of the past have a longer interval than those to come, so that the demonstration starts
# in seconds. The monitors have this interval until the past is rolled up, because the interval is
# how long a check counts.
PAST_INTERVAL = 1800

REFUSED = (
    "connection_refused",
    "The connection was refused by 127.0.0.1 port 443: nothing listens there.",
)
NO_PORT = (
    "connection_refused",
    "The connection was refused by 127.0.0.1 port 25: nothing listens there.",
)
NO_TLS = (
    "starttls_refused",
    "The server at 127.0.0.1 port 587 does not start TLS. It answered “454 TLS is not available”.",
)
NO_RECORD = ("dns_no_answer", "The name shop.example has no MX record, by DNS server 127.0.0.1.")
NO_PING = ("ping_timeout", "No answer from 127.0.0.1 to 5 pings within the limit of 30 s.")
SLOW_HEADERS = ("timeout:ttfb", "The server sent no complete headers within 30 s.")

# The parents of a monitor, by name.
PARENTS = {"Intranet wiki": "Old intranet"}

TEAM = "Shop team"
# The groups of the status page, and its own names for monitors.
PUBLIC = {
    "Shop": ("Shop", "Payments", "Login", "Search"),
    "For developers": ("Public API", "Documentation"),
}
PUBLIC_NAMES = {"Login": "Accounts", "Public API": "API"}
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="#0b6e4f">'
    '<path d="M6 10h20l2 18H4Z"/><path d="M11 12V8a5 5 0 0 1 10 0v4" fill="none" stroke="#0b6e4f"'
    ' stroke-width="2"/></svg>'
)
BRAND = [
    ("logo", b64encode(LOGO.encode()).decode()), ("favicon", b64encode(LOGO.encode()).decode()),
    ("accent", "#0b6e4f"), ("home_url", "https://shop.example"), ("language", "en"),
    ("footer", "Shop Ltd, 1 Harbour Street. https://shop.example/imprint"),
]  # fmt: skip
RUNBOOK = (
    "Restart the web server: https://wiki.example/shop/restart\nAsk Ada about the load balancer."
)

# The people who acknowledged incidents and commented on them.
ADA, LIN = "ada@wakeful.test", "lin@wakeful.test"


def monitors(targets: Targets) -> list[tuple[Pairs, Past]]:
    """The form fields and the past of each monitor. ``targets`` has the servers that they check."""
    http = targets.http
    team = [("alerts[0][key]", "contact"), ("alerts[0][value]", TEAM)]
    removed_hook = [("alerts[0][key]", "slack"), ("alerts[0][value]", f"{http}/hooks/gone")]
    return [
        (
            _form("Shop", f"{http}/shop", "shop,production", ("notes", RUNBOOK), *team),
            Past(180, outages=(
                PastOutage(71.3, 42, *REFUSED, "The load balancer was moved.", ADA),
                PastOutage(33.6, 9, acknowledged_by=LIN),
                PastOutage(12.1, 4),
            )),
        ),
        (_form("Public API", f"{http}/api", "api,production", *team), Past(45, 0.15)),
        (
            _form("Documentation", f"{http}/docs", "docs"),
            Past(90, outages=(PastOutage(54.4, 180, *SLOW_HEADERS, "A crawler. Blocked.", ADA),)),
        ),
        (_form("Asset server", f"{http}/assets", "production"), Past(60, gap_days_ago=20)),
        (
            _form("Login", f"{http}/login", "production,auth", ("confirmations", "1"), *team),
            Past(110, outages=tuple(PastOutage(day, 6) for day in (48, 47.9, 21.4, 6.8, 2.3, 1.1))),
        ),
        (
            _form(
                "Search", f"{http}/search", "production",
                ("slow_after", "600"), ("slow_alert_after", "3"),
            ),
            Past(420, 0.4, outages=(PastOutage(15.5, 25, acknowledged_by=ADA),)),
        ),
        (
            _form(
                "Stock of the month", f"{http}/stock", "shop",
                ("alert_condition", "url_no_text"), ("alert_text_lookup", "In stock"), *team,
            ),
            Past(95),
        ),
        (
            _form("Payments", f"{http}/payments", "shop,production", *team),
            Past(240, outages=(PastOutage(60.2, 15, acknowledged_by=LIN), PastOutage(8.4, 33))),
        ),
        (_form("Blog", f"{http}/blog", "docs", *removed_hook), Past(130)),
        (_form("Old intranet", "http://127.0.0.1:9/", "internal"), Past(35, https=False)),
        (_form("Intranet wiki", "http://127.0.0.1:9/wiki", "internal"), Past(60, https=False)),
        (
            _form(
                "Partner gateway", f"{targets.expiring}/", "api", ("ssl_alert_days", "14"), *team
            ),
            Past(150),
        ),
        (_form("Printer", f"{targets.self_signed}/", "internal"), Past(20)),
        (
            _form(
                "Mail server", targets.mail, "production",
                ("alert_condition", "url_no_text"), ("alert_text_lookup", "220 "),
                ("timeout", "5"), *team,
            ),
            Past(12, outages=(PastOutage(25.7, 18, *NO_PORT, acknowledged_by=LIN),)),
        ),
        (
            _form(
                "Mail submission", targets.submission, "production", ("starttls", "smtp"),
                ("ssl_alert_days", "14"), ("timeout", "5"), *team,
            ),
            Past(16, outages=(PastOutage(40.2, 22, *NO_TLS, acknowledged_by=ADA),)),
        ),
        (
            _form(
                "Mail records", f"{targets.names}/shop.example?type=MX", "production",
                ("alert_condition", "url_no_text"), ("alert_text_lookup", "10 mail.shop.example."),
                ("timeout", "5"), *team,
            ),
            Past(9, outages=(PastOutage(18.9, 31, *NO_RECORD),)),
        ),
        (
            _form("Router", "ping://127.0.0.1", "internal", ("ping_count", "5"), *team),
            Past(6, 0.5, outages=(PastOutage(29.1, 7, *NO_PING), PastOutage(3.4, 12, *NO_PING))),
        ),
        (_form("Data warehouse", f"{http}/docs", "internal"), Past(310)),
        (
            _form(
                "Newsletter", f"{http}/newsletter", "shop",
                ("assertions[0][source]", "json"), ("assertions[0][property]", "$.status"),
                ("assertions[0][op]", "="), ("assertions[0][value]", "ok"),
            ),
            Past(75),
        ),
    ]  # fmt: skip


def contacts(targets: Targets) -> list[Pairs]:
    hooks = {TEAM: "team", "On call": "on-call"}
    return [
        [
            ("name", name),
            ("channels[0][key]", "webhook"),
            ("channels[0][value]", f"{targets.http}/hooks/{path}"),
            ("default", str(name == TEAM).lower()),
        ]
        for name, path in hooks.items()
    ]


def status_page(ids: Mapping[str, int]) -> Pairs:
    """The fields of the status page. ``ids``: the ids of the monitors by name."""
    public_names = [name for names in PUBLIC.values() for name in names]
    page = [("name", "Status of the shop"), ("slug", "shop"), ("description", "How we are doing.")]
    page += BRAND
    page += [(f"monitors[{index}]", str(ids[name])) for index, name in enumerate(public_names)]
    for index, (name, public) in enumerate(PUBLIC_NAMES.items()):
        page += [(f"names[{index}][key]", str(ids[name])), (f"names[{index}][value]", public)]
    for index, (group, names) in enumerate(PUBLIC.items()):
        page.append((f"groups[{index}][name]", group))
        page += [
            (f"groups[{index}][monitors][{position}]", str(ids[name]))
            for position, name in enumerate(names)
        ]
    return page


def _form(name: str, url: str, tags: str, *more: tuple[str, str]) -> Pairs:
    return [("name", name), ("url", url), ("interval", str(PAST_INTERVAL)), ("tags", tags), *more]
