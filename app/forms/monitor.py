"""The monitor's schema (API 3, decisions 3 and 7)."""

from __future__ import annotations

import re
from typing import Any, cast

from wtforms.fields.core import Field

from app import records
from app.checks import kinds
from app.forms import fields, monitor_choices
from app.forms.alert_lists import WHO_IS_ALERTED, channel_list, quiet_hours_fields
from app.forms.assertions import AssertionList
from app.forms.lists import DependencyIds, Lines, PairList, Places, Tags
from app.forms.schema import SchemaField, SchemaForm, defaults_of
from app.i18n import N_, _
from app.rules import text
from app.rules.cross_field import RULES
from app.rules.schedules import check_line
from app.rules.slugs import check_heartbeat_slug, check_token
from app.rules.text import parse_statuses
from app.rules.url import scheme_of

# Fields that a server with the base API alone lacks.
ADDED_FIELDS = (
    "check_every", "timeout", "accepted_statuses", "follow_redirects", "verify_tls", "request_body",
    "slow_after", "slow_alert_after", "confirmations", "tags", "notes", "remind_after",
    "quiet_start", "quiet_end", "quiet_zone", "locations", "location_rule", "depends_on",
    "starttls", "ping_count", "assertions", "period", "schedule", "zone", "grace", "max_run",
    "slug",
)  # fmt: skip


OTHER_DIRECTION = N_(
    "A heartbeat is called, and other monitors are checked: one cannot become the other. Create a"
    " new monitor."
)
NOT_A_HEARTBEAT = N_("Only heartbeats have this. Their URL is heartbeat:.")
NOTHING_TO_CHECK = N_("A heartbeat is not checked: something calls Wakeful.")


def name_of(url: str) -> str:
    """The name of a monitor that nobody has named: the host and path of its URL."""
    # Without the query, which may contain a token.
    address = re.split("[?#]", url.partition(":")[2].lstrip("/"), maxsplit=1)[0]
    return address.strip("/")[: records.MAX_NAME] or url[: records.MAX_NAME]


def warns_by_default(url: str) -> bool:
    """Whether a new monitor of this URL starts with the warning of its certificate's expiry."""
    return scheme_of(url) in ("https", "tls")


def check_header(_field: Field, pair: records.Pair) -> tuple[str | None, str | None]:
    return (
        text.fault_of(lambda: text.header_name(pair.key)),
        text.fault_of(lambda: text.header_value(pair.key, pair.value)),
    )


@defaults_of(records.Monitor)
class MonitorForm(SchemaForm):
    """The fields of a monitor."""

    name = fields.Text(
        N_("Name"), required=True, limit=records.MAX_NAME,
        description=N_("What the monitor is called in lists and alerts."),
    )  # fmt: skip
    url = fields.Url(
        "URL", required=True, limit=records.MAX_URL,
        description=N_(
            "The address to check, such as %(addresses)s; or %(heartbeat)s for a job that calls"
            " Wakeful.",
            addresses=", ".join(kind.address for kind in kinds.KINDS if kind.check),
            heartbeat=records.HEARTBEAT_URL,
        ),
    )  # fmt: skip
    interval = fields.NumberChoice(
        N_("Interval"),
        monitor_choices.interval_labels,
        required=True,
        label_of=monitor_choices.interval_label,
        description=N_("How often the URL is checked."),
    )
    check_every = fields.Number(
        N_("Check every, in seconds"), records.CHECK_EVERY_SECONDS,
        description=N_(
            "The true pause between checks, where it is none of the intervals. interval is then the"
            " nearest of them. Leave empty for the interval; sending interval alone clears it."
        ),
    )  # fmt: skip
    alert_condition = fields.WordChoice(
        N_("Alert when"), monitor_choices.CONDITION_LABELS,
        description=N_(
            "An unreachable URL always opens an incident. You can add a condition on the text."
        ),
    )  # fmt: skip
    alert_text_lookup = fields.Text(
        N_("Text to find"), limit=records.MAX_TEXT_LOOKUP,
        description=N_(
            "Case-sensitive. Searched for in the response (HTTP), in the first 1 KiB that the "
            "server sends (TCP) or in the records (DNS), one a line."
        ),
    )  # fmt: skip
    request_method = fields.WordChoice(N_("Method"), records.RequestMethod)
    request_headers = PairList(
        N_("Request headers"),
        limit=records.MAX_HEADERS,
        check=check_header,
        labels={"key": N_("Name"), "value": N_("Value")},
        description=N_("Sent with every check. Stored values are shown masked."),
    )
    request_auth_username = fields.Text(
        N_("User name"),
        limit=records.MAX_CREDENTIAL,
        description=N_("For Basic authentication of the check."),
        # The target's user: a browser must not fill in the person's login to the dashboard.
        render_kw={"autocomplete": "off"},
    )
    request_auth_password = fields.Password(
        N_("Password"), limit=records.MAX_CREDENTIAL,
        description=N_("Kept encrypted and never shown again."),
    )  # fmt: skip
    request_body = fields.Secret(
        N_("Request body"), max_bytes=records.MAX_REQUEST_BODY_BYTES, lines=True,
        description=N_(
            "Sent with every check, whatever the method. It is treated as a secret: it is shown "
            "masked once it is stored, and no redirect takes it to another host, port or scheme."
        ),
    )  # fmt: skip
    cache_buster = fields.NumberSwitch(
        N_("Bypass caches"),
        description=N_("Adds a unique query parameter to each request to get past caches."),
    )
    timeout = fields.Number(
        N_("Time limit in seconds"), records.TIMEOUT_SECONDS,
        description=N_("For the whole check, from the DNS lookup to the last byte."),
    )  # fmt: skip
    accepted_statuses = fields.Text(
        N_("Accepted status codes"), limit=records.MAX_ACCEPTED_STATUSES, rule=parse_statuses,
        description=N_("Comma-separated codes and ranges, such as 200-299,401."),
    )  # fmt: skip
    follow_redirects = fields.Switch(
        N_("Follow redirects"),
        description=N_(
            "Up to ten. To another host, port or scheme, only the headers User-Agent, Accept, "
            "Accept-Language, Cache-Control and Pragma are sent: no other header, no password and "
            "no body. From http to https of the same host, all are sent."
        ),
    )
    verify_tls = fields.Switch(
        N_("Verify the certificate"),
        description=N_(
            "If off, an invalid or expired certificate opens no incident, and old devices with "
            "TLS 1.0, weak keys or unsafe renegotiation can be checked."
        ),
    )
    starttls = fields.WordChoice(
        N_("STARTTLS"), records.StartTls, none=N_("TLS at once"),
        description=N_("How TLS begins on a port that speaks its own protocol first."),
    )  # fmt: skip
    ping_count = fields.Number(
        N_("Pings"), records.PING_COUNT,
        description=N_("How many are sent in each check. One answer is enough."),
    )  # fmt: skip
    slow_after = fields.Number(
        N_("Slow after, in milliseconds"), records.SLOW_AFTER_MS,
        description=N_("A slower answer is shown as degraded. Leave empty for never."),
    )  # fmt: skip
    slow_alert_after = fields.Number(
        N_("Slow alert after, in minutes"), records.SLOW_ALERT_AFTER_MINUTES,
        description=N_(
            "An incident of severity degraded opens when the median response time of the last so"
            " many minutes is slow. It is no downtime. Leave empty, or 0, for never."
        ),
    )  # fmt: skip
    confirmations = fields.Number(
        N_("Rechecks before an incident"), records.CONFIRMATIONS,
        description=N_("How many times a failing check is repeated before an incident opens."),
    )  # fmt: skip
    ssl_alert_days = fields.CertificateDays(
        N_("Certificate expiry"),
        lambda: {records.AUTO: monitor_choices.AUTO_LABEL} | monitor_choices.days_labels(),
        label_of=monitor_choices.days_label,
        none=N_("Off"),
        description=N_(
            "When to warn that the certificate expires. auto: when a third of its lifetime "
            "remains, or half if it is valid for 10 days or less."
        ),
    )
    domain_alert_days = fields.NumberChoice(
        N_("Domain expiry"),
        monitor_choices.days_labels,
        label_of=monitor_choices.days_label,
        none=N_("Off"),
        description=N_(
            "When to warn that the domain name expires. Below a suffix such as uk.com or "
            "github.io, it is unknown where no registry answers for the name itself."
        ),
    )
    maintenance_start_at = fields.DateTime(
        N_("Maintenance from"), render_kw={"step": "60"},
        description=N_("During this time, no incident opens and no alert is sent."),
    )  # fmt: skip
    maintenance_end_at = fields.DateTime(N_("Maintenance until"), render_kw={"step": "60"})
    alerts = channel_list(N_("Alerts"), WHO_IS_ALERTED, contacts=True)
    remind_after = fields.Number(
        N_("Remind every, in minutes"), records.REMIND_AFTER_MINUTES,
        description=N_(
            "Repeats the alert until somebody acknowledges it. Leave empty for no reminders."
        ),
    )  # fmt: skip
    quiet_start, quiet_end, quiet_zone = quiet_hours_fields()
    tags = Tags(N_("Tags"), description=N_("Comma-separated."))
    notes = fields.Text(
        N_("Notes"),
        limit=records.MAX_NOTES,
        lines=True,
        unify_lines=True,
        default="",
        description=N_(
            "What to know when it fails, such as a link to the runbook. Links become clickable."
            " Alerts include the first lines."
        ),
        render_kw={"rows": "3"},
    )
    locations = Places(
        N_("Checked from"), limit=records.MAX_LOCATIONS,
        description=N_("Each place makes its own checks. None chosen: the place default."),
    )  # fmt: skip
    location_rule = fields.WordChoice(
        N_("Down when it fails from"), monitor_choices.RULE_LABELS,
        description=N_(
            "The places that have a vote count; a silent place has none. What fewer places see is"
            " shown as degraded and opens no incident."
        ),
    )  # fmt: skip
    depends_on = DependencyIds(
        N_("Reached through"), limit=records.MAX_DEPENDS_ON,
        description=N_(
            "The monitors that this one is reached through, such as its router. While one of them"
            " is down, this one opens no incident and alerts nobody."
        ),
    )  # fmt: skip
    assertions = AssertionList(
        N_("Assertions"),
        description=N_("What a good answer must have besides. All of them must hold."),
    )

    period = fields.Number(
        N_("Expected every, in seconds"), records.PERIOD_SECONDS,
        description=N_("How long after a ping the next one is due. Leave empty for the interval."),
    )  # fmt: skip
    schedule = Lines(
        N_("Schedule"), limit=records.MAX_SCHEDULE, rule=check_line, example="30 2 * * *",
        description=N_(
            "In place of a period: cron lines, such as 30 2 * * *, or OnCalendar lines, such as"
            " Mon..Fri 02:30, one a line."
        ),
    )  # fmt: skip
    zone = fields.Zone(N_("Time zone of the schedule"), description=N_("Example: Europe/Berlin"))
    grace = fields.Number(
        N_("Grace, in seconds"), records.GRACE_SECONDS,
        description=N_("How much later than due a ping may come before an incident opens."),
    )  # fmt: skip
    max_run = fields.Number(
        N_("Longest run, in seconds"), records.MAX_RUN_SECONDS,
        description=N_(
            "An incident opens if a run that has reported its start takes longer. Leave empty for"
            " no limit."
        ),
    )  # fmt: skip
    slug = fields.Text(
        N_("Name in ping addresses"), limit=records.MAX_HEARTBEAT_SLUG, rule=check_heartbeat_slug,
        description=N_(
            "Names this heartbeat in ping addresses that begin with a key of scope ping: lower-case"
            " letters, digits, - and _. Leave empty to derive it from the name."
        ),
    )  # fmt: skip

    def validate(self, extra_validators: Any = None) -> bool:
        interval = self.interval
        if (
            records.is_heartbeat(self.url.data)
            and interval.data is None
            and not interval.process_errors
        ):
            interval.required, interval.data = False, records.DEFAULT_HEARTBEAT_INTERVAL
        return super().validate(extra_validators)

    def check_cross_field(self) -> None:
        if self.context.bare:
            self._keep_secrets_from_others()
            return
        by_name = {
            field.short_name: field
            for field in self.schema_fields()
            if field.sent or not field.not_shown
        }
        if self.flawless(self.url) and self.url.data:
            values = {name: field.data for name, field in by_name.items() if not field.errors}
            stored_url = None if self.clone else getattr(self.record, "url", None)
            if stored_url and kinds.turns_into_or_from_heartbeat(stored_url, self.url.data):
                self.url.add_fault(_(OTHER_DIRECTION))
                return
            for name, sentence in kinds.fields_of_other_kinds(self.url.data, values):
                field, _dot, part = name.partition(".")
                if part:
                    position, _dot, column = part.partition(".")
                    self.assertions.add_row_fault(int(position), column, sentence)
                else:
                    by_name[field].add_fault(sentence)
        self._keep_secrets_from_others()
        for names, rule in RULES:
            # The form for another server may lack some of the fields.
            rule_fields = [by_name[name] for name in names if name in by_name]
            if len(rule_fields) == len(names) and self.flawless(*rule_fields):
                self.add_faults(rule(*(field.data for field in rule_fields)))

    def _keep_secrets_from_others(self) -> None:
        """Do not keep stored secrets for another server than they were entered for: a person who
        changes the URL to a server of their own would learn them.
        """
        if self.leads_elsewhere():
            for name in records.SENT_SECRETS:
                if name in self:
                    cast(SchemaField, self[name]).refuse_stored()

    def leads_elsewhere(self) -> bool:
        """Whether the URL names another server, which must not get the stored secrets."""
        if not getattr(self.record, "url", "") or not self.url.data or self.url.errors:
            return False
        changes = {name: self[name].data for name in ("url", "verify_tls") if name in self}
        return kinds.sends_secrets_elsewhere(self.record, changes)


class MonitorStoreForm(MonitorForm):
    """A new monitor also accepts ``heartbeat_token``."""

    heartbeat_token = fields.Text(
        N_("Secret of the ping URL"), limit=records.MAX_TOKEN, rule=check_token,
        description=N_(
            "Keeps the address of another service: a UUID, or 8 to 64 of A to Z, a to z, 0 to 9, -"
            " and _. Leave empty for a new one."
        ),
    )  # fmt: skip

    def check_cross_field(self) -> None:
        super().check_cross_field()
        if self.heartbeat_token.data and self.url.data and not records.is_heartbeat(self.url.data):
            self.heartbeat_token.add_fault(_(NOT_A_HEARTBEAT))


class MonitorUpdateForm(MonitorForm):
    """An update of a monitor also accepts ``pause``."""

    pause = fields.Switch(N_("Paused"), description=N_("A paused monitor is not checked."))


class CheckForm(MonitorForm):
    """Monitor fields for a check without storing: only ``url`` is required (decision 11)."""

    name = fields.Text(N_("Name"), limit=records.MAX_NAME)
    interval = fields.NumberChoice(N_("Interval"), monitor_choices.interval_labels, default=None)

    def check_cross_field(self) -> None:
        super().check_cross_field()
        if records.is_heartbeat(self.url.data):
            self.url.add_fault(_(NOTHING_TO_CHECK))
