"""The shapes of files that other tools write, and what must come out of each: the meaning is kept,
or the entry is refused, or the loss is sentences for that entry. Names are invented.
"""

from __future__ import annotations

import json

import pytest

from app.forms.imported import ImportDefaults, validate
from app.forms.schema import FormContext
from app.imports import files
from app.imports.candidates import NotReadable
from app.records import Assertion, Pair
from tests.support.kuma import TABLES, TABLES_2, kuma_db

REFUSED = object()
PAUSED = {"paused": True}
RUNS = {"paused": False}
HOOK = "https://hooks.slack.com/services/T0/B0/"
GENIE = "01234567-89ab-cdef-0123-456789abcdef"


def reading(data, **more):
    text = data if isinstance(data, str) else json.dumps(data)
    return files.read(text.encode(), **more)


def entry(data, name="m", **more):
    """The entry of this name, and what a preview says of it and of the file."""
    whole = reading(data, **more)
    (candidate,) = [candidate for candidate in whole.candidates if candidate.name == name]
    validated = validate(
        candidate, ImportDefaults(), FormContext(contact_exists=lambda _name: True)
    )
    return validated, " ".join([*validated.faults, *validated.remarks, *whole.remarks])


def check(data, wanted, sentences, **more):
    """``wanted``: fields that are kept, or ``REFUSED``. ``sentences``: parts of what is said."""
    validated, text = entry(data, **more)
    if wanted is REFUSED:
        assert not validated.fits, validated.fields
    else:
        assert validated.fits, validated.faults
        values = {**validated.fields, "paused": validated.candidate.paused}
        assert {name: values[name] for name in wanted} == wanted
    for part in sentences:
        assert part in text
    return validated


def kuma(*others, **fields):
    """A backup with the monitor ``m``."""
    monitor = {"id": 1, "name": "m", "type": "http", "url": "https://a.example", "interval": 60,
               "active": True, "maxretries": 0, "accepted_statuscodes": ["200-299"]}  # fmt: skip
    notifications = [record for record in others if "config" in record]
    groups = [record for record in others if "config" not in record]
    return {"monitorList": [monitor | fields, *groups], "notificationList": notifications}


def record(*conditions, type="A", **more):
    """A backup whose monitor of DNS has these conditions: operator, value, and how it is linked."""
    rows = [
        {"type": "expression", "variable": "record", "operator": operator, "value": value,
         "andOr": link[0] if link else "and"}
        for operator, value, *link in conditions
    ]  # fmt: skip
    return kuma(type="dns", hostname="a.example", dns_resolve_type=type,
                dns_resolve_server="192.0.2.53", **{"conditions": rows, **more})  # fmt: skip


def group(id, **fields):
    return {"id": id, "name": f"group {id}", "type": "group", "active": True, **fields}


def notification(id, name="n", **config):
    return {"id": id, "name": name, "config": json.dumps(config)}


def alerting(name="n", **config):
    """A monitor with one notification."""
    return kuma(notification(7, name, **config), notificationIDList={"7": True})


KUMA = [
    ("a group above is paused", kuma(group(2, active=False), parent=2), PAUSED,
     ["group is paused"]),
    ("a group above that one is paused",
     kuma(group(2, parent=3), group(3, active=0), parent=2),
     {**PAUSED, "tags": ("group 3", "group 2")}, []),
    ("groups in a circle", kuma(group(2, parent=3), group(3, parent=2), parent=2), RUNS, []),
    ("inactive by its group", kuma(forceInactive=True), PAUSED, []),
    ("a group that runs", kuma(group(2), parent=2), RUNS, []),
    ("a group with notifications", kuma(group(2, notificationIDList={"1": True}), parent=2), RUNS,
     ["Notifications of groups are dropped"]),
    ("warnings are off", kuma(expiryNotification=False), {"ssl_alert_days": None}, []),
    ("warnings are not mentioned", kuma(), {"ssl_alert_days": None, "domain_alert_days": None}, []),
    ("warnings are on", kuma(expiryNotification=True, domainExpiryNotification=1),
     {"ssl_alert_days": 14, "domain_alert_days": 14}, ["Domain expiry: one alert, 14 days"]),
    ("a certificate that is not verified", kuma(expiryNotification=True, ignoreTls=True),
     {"ssl_alert_days": None}, []),
    ("the domain of a port", kuma(type="port", hostname="a.example", port=1,
                                  domainExpiryNotification=True),
     {"domain_alert_days": 14}, []),
    ("caches are bypassed", kuma(cacheBust=True), {"cache_buster": 1}, []),
    ("an IP version", kuma(ipFamily="ipv6"), RUNS, ["IP version dropped"]),
    ("a description", kuma(description="Runbook"), {"notes": "Runbook"}, []),
    ("a maintenance", kuma(maintenance=True), RUNS, ["Maintenance dropped"]),
    ("conditions", kuma(conditions=[{"type": "expression"}]), RUNS, ["Conditions dropped"]),
    ("a condition on a record", record(("equals", "192.0.2.1")),
     {"assertions": (Assertion("answer", None, "matches", r"^192\.0\.2\.1$"),)}, []),
    ("conditions on a record", record(("ends_with", "a.example"), ("not_contains", "b"), type="MX"),
     {"assertions": (Assertion("answer", None, "matches", r"^[0-9]+ .*a\.example\.$"),
                     Assertion("answer", None, "not_matches", "^[0-9]+ .*b.*$"))},
     ["one record that meets all"]),
    ("either record", record(("starts_with", "a", "or"), ("equals", "b", "or"), type="CNAME"),
     {"assertions": (Assertion("answer", None, "matches", r"^a.*$|^b\.$"),)}, []),
    ("neither record", record(("not_equals", "a", "or"), ("equals", "b", "or")), REFUSED,
     ["more than Wakeful's assertions"]),
    ("a group of conditions", record(type="A", conditions=[{"type": "group", "children": []}]),
     REFUSED, ["more than Wakeful's assertions"]),
    ("no conditions, as a column", record(conditions="[]"), {"assertions": ()}, []),
    ("a keyword in compact JSON", kuma(type="keyword", keyword='"ok":[1,2'),
     {"alert_text_lookup": None,
      "assertions": (Assertion("body", None, "matches", r'"ok"\s*:\s*\s*\[\s*1\s*,\s*2'),)}, []),
    ("a keyword that is a text", kuma(type="keyword", keyword="Hello: you"),
     {"alert_text_lookup": "Hello: you", "assertions": ()}, []),
    ("a certificate warning of a port", kuma(type="port", hostname="a.example", port=1,
                                             expiryNotification=True, conditions=[]),
     {"url": "tcp://a.example:1"}, []),
    ("a port with TLS", kuma(type="port", hostname="a.example", port=993, expiryNotification=True,
                             smtpSecurity="secure"),
     {"url": "tls://a.example:993", "starttls": None, "ssl_alert_days": 14}, []),
    ("a port with STARTTLS", kuma(type="port", hostname="a.example", port=143,
                                  expiryNotification=True, smtp_security="starttls"),
     {"url": "tls://a.example:143", "starttls": "imap"}, []),
    ("the domain of a push monitor", kuma(type="push", pushToken="a" * 32,
                                          domainExpiryNotification=True),
     {"heartbeat_token": "a" * 32}, []),
    ("the domain of an address", kuma(url="https://192.0.2.1:8443/a", domainExpiryNotification=1),
     {"domain_alert_days": None}, []),
    ("the domain of a host with a port", kuma(url="https://u:p@a.example:8443?b",
                                              domainExpiryNotification=1),
     {"domain_alert_days": 14}, []),
    ("what nobody knows yet", kuma(fancyMode="on"), RUNS, ['Setting "fancyMode" dropped']),
    ("a TLS alert is expected", kuma(type="port", hostname="a", port=1,
                                    expectedTlsAlert="certificate_required"),
     REFUSED, ["TLS alert"]),
    ("no TLS alert is expected", kuma(type="port", hostname="a.example", port=1,
                                     expectedTlsAlert="none"),
     {"url": "tcp://a.example:1"}, []),
    ("a bearer token", kuma(authMethod="bearer", bearer_token="t0"),
     {"request_headers": (Pair("Authorization", "Bearer t0"),)}, []),
    ("a bearer token that is missing", kuma(authMethod="bearer"), REFUSED, ["authentication"]),
    ("a list without passwords", kuma(authMethod="basic", includeSensitiveData=False),
     REFUSED, ["lacks the user name", "lacks request headers, bodies and passwords"]),
    ("a login without a password", kuma(authMethod="basic", basic_auth_user="u"),
     {"request_auth_username": "u"}, ["lacks the password"]),
    ("a login that is left over", kuma(authMethod=None, basic_auth_user="u"),
     {"request_auth_username": None}, []),
    ("a login of an old backup", kuma(basic_auth_user="u", basic_auth_pass="p"),
     {"request_auth_username": "u"}, []),
    ("headers that are no text", kuma(headers='{"X-A": {"b": 1}}'), REFUSED, ["headers"]),
    ("more redirects than ours", kuma(maxredirects=30), {"follow_redirects": True},
     ["At most 30 redirects: Wakeful follows up to"]),
    ("no redirects", kuma(maxredirects=0), {"follow_redirects": False}, []),
    ("20 seconds", kuma(interval=20), {"interval": 60, "check_every": 20}, []),
    ("2 minutes", kuma(interval=120), {"interval": 60, "check_every": 120}, []),
    ("4 hours", kuma(interval=14_400), {"interval": 3600, "check_every": 14_400}, []),
    ("5 seconds", kuma(interval=5), {"check_every": 10}, ["Interval: 5 s becomes 10 s."]),
    ("2 days", kuma(interval=172_800), {"check_every": 86_400},
     ["Interval: 2 d becomes 1 d."]),
    ("no time limit of its own", kuma(interval=60, timeout=0), {"timeout": 48}, []),
    ("rechecks", kuma(maxretries=3, retryInterval=60), {"confirmations": 3}, ["pause of 1 min"]),
    ("copies of a mail", alerting(type="smtp", smtpTo="a@b.example", smtpCC="c@b.example",
                                  smtpBCC="d@b.example"),
     {"alerts": (Pair("email", "a@b.example"), Pair("email", "c@b.example"),
                 Pair("email", "d@b.example"))}, []),
    ("a channel without an address", alerting(type="discord", discordWebhookUrl=""),
     {"alerts": ()}, ["its address is empty"]),
    ("a channel that Wakeful lacks", alerting(type="matrix"), {"alerts": ()},
     ["Wakeful has no matching channel"]),
    ("a channel that is elsewhere", kuma(notificationIDList=[9]), {"alerts": ()},
     ["the file does not contain its address"]),
    ("a channel beside the webhook's own",
     alerting("Ops", type="slack", slackwebhookURL=f"{HOOK}x", slackchannel="#ops"),
     {"alerts": (Pair("slack", f"{HOOK}x"),)}, ['"slackchannel" is dropped']),
    ("a thread", alerting(type="discord", threadId="5",
                          discordWebhookUrl="https://discord.com/api/webhooks/1/a"),
     {}, ['"threadId" is dropped']),
    *[(f"the channel {value}", alerting(**config), {"alerts": (Pair(channel, value),)}, [])
      for channel, value, config in [
        ("ntfy", "https://tk_1@push.example/ops",
         {"type": "ntfy", "ntfyserverurl": "https://push.example/", "ntfytopic": "ops",
          "ntfyAuthenticationMethod": "accessToken", "ntfyaccesstoken": "tk_1"}),
        ("ntfy", "https://ntfy.sh/ops",
         {"type": "ntfy", "ntfyserverurl": "https://ntfy.sh", "ntfytopic": "ops",
          "ntfyAuthenticationMethod": "none", "ntfyaccesstoken": "left-over"}),
        ("gotify", "https://push.example/?token=A.x",
         {"type": "gotify", "gotifyserverurl": "https://push.example/",
          "gotifyapplicationToken": "A.x", "gotifyPriority": 8}),
        ("pushover", f"{'u' * 30}/{'a' * 30}",
         {"type": "pushover", "pushoveruserkey": "u" * 30, "pushoverapptoken": "a" * 30}),
        ("pagerduty", f"eu:{'R' * 32}",
         {"type": "PagerDuty", "pagerdutyIntegrationKey": "R" * 32,
          "pagerdutyIntegrationUrl": "https://events.eu.pagerduty.com/v2/enqueue"}),
        ("opsgenie", f"eu:{GENIE}",
         {"type": "Opsgenie", "opsgenieApiKey": GENIE, "opsgenieRegion": "eu"}),
        ("opsgenie", GENIE, {"type": "Opsgenie", "opsgenieApiKey": GENIE, "opsgenieRegion": "us"}),
    ]],
    ("an ntfy login", alerting(type="ntfy", ntfytopic="ops", ntfyserverurl="x",
                               ntfyAuthenticationMethod="usernamePassword"),
     {"alerts": ()}, ["with an access token alone"]),
    ("codes as a column has them", kuma(accepted_statuscodes=None,
                                        accepted_statuscodes_json='["200-299","418"]'),
     {"accepted_statuses": "200-299,418"}, []),
    ("a column without codes", kuma(accepted_statuscodes=None, accepted_statuscodes_json="null"),
     REFUSED, ["not a status code"]),
    ("upside down", kuma(upsideDown=True), REFUSED, ["upside-down"]),
    ("a ping", kuma(type="ping", hostname="2001:db8::1", ping_count=20),
     {"url": "ping://[2001:db8::1]", "ping_count": 10}, ["Pings: 20 becomes 10."]),
    ("a name", kuma(type="dns", hostname="a.example", dns_resolve_type="MX", port=53,
                    dns_resolve_server="1.1.1.1, 8.8.8.8"),
     {"url": "dns://1.1.1.1:53/a.example?type=MX"}, ["DNS servers: 1.1.1.1 is kept"]),
    *[(f"a mail server, {security}", kuma(type="smtp", hostname="a.example", port=port,
                                          smtpSecurity=security), wanted, [])
      for security, port, wanted in [
          ("secure", 465, {"url": "tls://a.example:465", "starttls": None}),
          ("starttls", 587, {"url": "tls://a.example:587", "starttls": "smtp"}),
          ("nostarttls", None, {"url": "tcp://a.example:25", "alert_text_lookup": "220",
                                "alert_condition": "url_no_text"}),
      ]],
]  # fmt: skip


def test_the_lists_that_clients_of_uptime_kuma_print_are_its():
    monitor = kuma(maxretries=1)["monitorList"][0]
    other = {"name": "DNS", "type": "ping", "url": "192.0.2.53"}
    for data in ([monitor, other], {"1": monitor, "2": other}, {"monitorList": {"1": monitor}},
                 {"monitors": [monitor]}):  # fmt: skip
        assert reading(data).source == "Uptime Kuma"
        check(data, {"confirmations": 1}, [])


def test_the_database_of_uptime_kuma_2_keeps_what_the_list_has(tmp_path):
    script = f"""{TABLES_2}
        INSERT INTO monitor (id, name, type, active) VALUES (1, 'old', 'group', 0);
        INSERT INTO monitor (id, name, type, url, cache_bust, ip_family, description, parent)
          VALUES (2, 'm', 'http', 'https://a.example', 1, 'ipv4', 'Runbook', 1);
        INSERT INTO monitor_maintenance VALUES (1, 2, 1);"""
    (candidate,) = files.read_path(kuma_db(tmp_path / "kuma.db", script)).candidates
    assert candidate.paused
    assert candidate.fields["domain_alert_days"] == "14"
    assert candidate.fields["cache_buster"] == "1"
    sentences = " ".join(candidate.remarks)
    assert candidate.fields["notes"] == "Runbook"
    for part in ("IP version", "Maintenance", "group is paused"):
        assert part in sentences
    assert "Conditions" not in sentences


@pytest.mark.parametrize("tables", [TABLES, TABLES_2], ids=["1.23", "2"])
def test_the_databases_of_uptime_kuma_have_push_tokens_and_servers_of_dns(tmp_path, tables):
    """Read without these columns, each job would call a new URL, and MX would become A."""
    rows = """INSERT INTO monitor (name, type, push_token) VALUES ('job', 'push', 'aBcDeF012345');
        INSERT INTO monitor (name, type, hostname, port, dns_resolve_type, dns_resolve_server)
          VALUES ('mail', 'dns', 'a.example', 53, 'MX', '192.0.2.53');
        INSERT INTO monitor (name, type, hostname) VALUES ('router', 'ping', '192.0.2.1');
        INSERT INTO monitor (name, type, hostname, port) VALUES ('port', 'port', '192.0.2.1', 1);"""
    candidates = files.read_path(kuma_db(tmp_path / "kuma.db", tables + rows)).candidates
    job, mail, router, port = (
        validate(candidate, ImportDefaults(), FormContext()) for candidate in candidates
    )
    assert job.fields["heartbeat_token"] == "aBcDeF012345"
    assert mail.fields["url"] == "dns://192.0.2.53:53/a.example?type=MX"
    assert router.fields["ping_count"] == (1 if tables is TABLES_2 else 3)
    assert port.fields["url"] == "tcp://192.0.2.1:1"
    # A new monitor has nothing but defaults, so there is nothing to say of it.
    sentences = {sentence for judged in (mail, router, port) for sentence in judged.sentences}
    assert sentences <= {"Domain expiry: one alert, 14 days before."}


def stack(**attributes):
    usual = {"pronounceable_name": "m", "monitor_type": "status", "url": "https://a.example"}
    return {"data": [{"id": "1", "type": "monitor", "attributes": usual | attributes}]}


BETTER_STACK = [
    ("a keyword of a port", stack(monitor_type="tcp", url="a.example", port="22",
                                   required_keyword="SSH-2.0"), RUNS,
     ["Keyword dropped"]),
    ("a keyword of its past", stack(required_keyword="SSH-2.0"), {"alert_text_lookup": None}, []),
    ("paused by status", stack(status="paused"), PAUSED, []),
    ("paused at a time", stack(paused_at="2026-01-01T00:00:00Z"), PAUSED, []),
    ("paused by a switch", stack(paused=True), PAUSED, []),
    ("up", stack(status="up", paused_at=None, paused=False), RUNS, []),
    ("warnings are off", stack(ssl_expiration=None, domain_expiration=-1),
     {"ssl_alert_days": None, "domain_alert_days": None}, []),
    ("codes", stack(monitor_type="expected_status_code", expected_status_codes=[200, 204]),
     {"accepted_statuses": "200,204"}, []),
    ("only 2xx", stack(), {"accepted_statuses": "200-299"}, []),
    ("milliseconds of TCP", stack(monitor_type="tcp", url="a.example", port="443",
                                  request_timeout=5000),
     {"url": "tcp://a.example:443", "timeout": 5}, []),
    ("what Wakeful lacks", stack(proxy_host="p", ip_version="ipv4", regions=["us"],
                                 recovery_period=180, confirmation_period=60,
                                 maintenance_from="01:00:00", monitor_group_id=5),
     RUNS, ["Proxy dropped", "IP version", "Regions", "Recovery period of 3 min", "Confirmation",
            "Maintenance hours", "monitor group", "Escalation policies"]),
    ("codes that are missing", stack(monitor_type="expected_status_code"), REFUSED,
     ["status codes cannot be read"]),
    ("headers as an object", stack(request_headers={"X-A": "b"}),
     {"request_headers": (Pair("X-A", "b"),)}, []),
    ("a port in the address", stack(monitor_type="tcp", url="a.example:22"),
     {"url": "tcp://a.example:22"}, []),
    ("cookies are dropped", stack(remember_cookies=False), RUNS, ["Wakeful keeps cookies"]),
    ("several ports", stack(monitor_type="smtp", url="a.example", port="25,465"),
     {"url": "tcp://a.example:25", "alert_text_lookup": "220"}, ["Ports: 25 is kept"]),
    ("a mail server with TLS", stack(monitor_type="imap", url="a.example", port="993"),
     {"url": "tls://a.example:993", "starttls": None}, []),
    ("a mail server's certificate", stack(monitor_type="pop", url="a.example", port="110",
                                          ssl_expiration=7),
     {"url": "tls://a.example:110", "starttls": "pop3", "ssl_alert_days": 7}, []),
    ("a ping", stack(monitor_type="ping", url="https://a.example/x"),
     {"url": "ping://a.example"}, []),
    ("a name", stack(monitor_type="dns", url="9.9.9.9", request_body="a.example"),
     {"url": "dns://9.9.9.9/a.example?type=A"}, []),
]  # fmt: skip


def robot(**fields):
    return {"data": [{"friendlyName": "m", "url": "https://a.example", "type": "HTTP",
                      "interval": 300, **fields}]}  # fmt: skip


def robot2(**fields):
    return {"monitors": [{"friendly_name": "m", "url": "https://a.example", "type": 1, "status": 2,
                          "interval": 300, **fields}]}  # fmt: skip


UPTIME_ROBOT = [
    ("redirects off", robot(followRedirections=False), {"follow_redirects": False}, []),
    ("TLS errors ignored", robot(checkSSLErrors=False), {"verify_tls": False}, []),
    ("TLS errors ignored, version 2", robot2(ssl={"ignore_errors": 1}), {"verify_tls": False}, []),
    ("digest", robot(authType="DIGEST", httpUsername="u"), REFUSED, ['"digest"']),
    ("digest, version 2", robot2(http_auth_type=2, http_username="u"), REFUSED, ['"digest"']),
    ("Basic", robot(authType="HTTP_BASIC", httpUsername="u", httpPassword="p"),
     {"request_auth_username": "u"}, []),
    ("no login", robot(authType="NONE", httpUsername="u"), {"request_auth_username": None}, []),
    ("bearer", robot(type="API", authType="BEARER", httpPassword="t0"),
     {"request_headers": (Pair("Authorization", "Bearer t0"),)}, []),
    ("assertions", robot(type="API", config={"apiAssertions": {"checks": [1]}}), REFUSED,
     ["assertions"]),
    ("codes", robot(successHttpResponseCodes=["2xx", "404"]),
     {"accepted_statuses": "200-299,404"}, []),
    ("codes, version 2", robot2(custom_http_statuses="404:1_302:0"),
     {"accepted_statuses": "200-301,303-399,404"}, []),
    ("reminders", robot(sslExpirationReminder=True, domainExpirationReminder=True),
     {"ssl_alert_days": 14, "domain_alert_days": 14}, ["Certificate expiry: one alert"]),
    ("domain reminders, version 2", robot2(ssl={"disable_domain_expire_notifications": 0}),
     {"domain_alert_days": 14}, ["Domain expiry"]),
    ("no domain reminders, version 2", robot2(disable_domain_expire_notifications=1),
     {"domain_alert_days": None}, []),
    ("days of a reminder", robot(sslExpirationReminder=True,
                                 config={"sslExpirationPeriodDays": [30, 7]}),
     {"ssl_alert_days": 30}, []),
    ("no reminders", robot(sslExpirationReminder=False), {"ssl_alert_days": None}, []),
    ("slow", robot(responseTimeThreshold=2000), {"slow_after": 2000, "slow_alert_after": 5},
     ["slow for 5 minutes"]),
    ("windows", robot(maintenanceWindows=[{"id": 5}]), RUNS, ["Maintenance windows dropped"]),
    ("windows, version 2", robot2(mwindows=[{"id": 5}]), RUNS, ["Maintenance windows dropped"]),
    ("a group", robot(groupId=3), RUNS, ["group is dropped"]),
    ("contacts without an address", robot(assignedAlertContacts=[{"alertContactId": 1}]),
     {"alerts": ()}, ["the file does not contain its address"]),
    ("contacts with an address", robot2(alert_contacts=[
        {"id": "9", "type": 2, "value": "a@b.example", "threshold": 5, "recurrence": 10}]),
     {"alerts": (Pair("email", "a@b.example"),), "remind_after": 10}, ["delay of 5 min"]),
    ("paused", robot(status="PAUSED"), PAUSED, []),
    ("paused, version 2", robot2(status=0), PAUSED, []),
    ("a body of pairs, version 2", robot2(http_method=3, post_type=1, post_content_type=0,
                                          post_value='{"a": "1"}'),
     {"request_body": "a=1",
      "request_headers": (Pair("Content-Type", "application/x-www-form-urlencoded"),)}, []),
    ("a body of JSON, version 2", robot2(http_method=3, post_type=2, post_content_type=1,
                                         post_value='{"a": "1"}'),
     {"request_body": '{"a": "1"}',
      "request_headers": (Pair("Content-Type", "application/json"),)}, []),
    ("a heartbeat whose secret is short", robot2(type=5, url="https://heartbeat.example/m1-abc"),
     {"url": "heartbeat:", "heartbeat_token": None}, ["Its job must call the ping URL"]),
    ("a heartbeat", robot2(type=5, url="https://heartbeat.uptimerobot.com/m7-0123456789abcdef",
                           interval=3600, timeout=30),
     {"url": "heartbeat:", "heartbeat_token": "m7-0123456789abcdef", "period": 3600},
     ["Its job must call the ping URL"]),
    ("a body", robot(httpMethodType="POST", postValueType="KEY_VALUE", postValueData={"a": "b c"}),
     {"request_body": "a=b+c"}, []),
    ("a keyword", robot(type="KEYWORD", keywordType="ALERT_NOT_EXISTS", keywordValue="x",
                        keywordCaseType=1),
     {"assertions": (Assertion("body", None, "matches", "(?i)x"),)}, []),
    ("a keyword type that nobody knows", robot2(type=2, keyword_type=3, keyword_value="x"), REFUSED,
     ['keyword type "3"']),
    ("headers as a list", robot(customHttpHeaders=[{"name": "X-A", "value": "b"}]),
     {"request_headers": (Pair("X-A", "b"),)}, []),
    ("headers as text", robot2(custom_http_headers='{"X-A": "b"}'),
     {"request_headers": (Pair("X-A", "b"),)}, []),
    ("headers in another form", robot2(custom_http_headers="X-A=b"), REFUSED, ["headers"]),
    ("codes as text", robot(successHttpResponseCodes="2xx,404"),
     {"accepted_statuses": "200-299,404"}, []),
    ("no login, version 2", robot2(http_auth_type=0, http_username="u"),
     {"request_auth_username": None}, []),
    ("a login without a user name", robot(authType="HTTP_BASIC"), REFUSED, ["user name"]),
    ("an SMS", robot2(alert_contacts=[{"id": 1, "type": 1, "value": "+4915112345678"}]),
     {"alerts": (Pair("sms", "+4915112345678"),)}, []),
    ("tags by name", robot(tagNames=["prod"]), {"tags": ("prod",)}, []),
    ("one page of several", robot() | {"nextLink": "https://a.example/2"}, RUNS,
     ["one page of several"]),
    ("one page of several, version 2", robot2() | {"pagination": {"total": 51}}, RUNS,
     ["1 of 51 monitors"]),
    ("DNS", robot(type="DNS", url="a.example"), {"url": "dns:a.example?type=A"}, []),
    ("records", robot(type="DNS", url="a.example",
                      config={"dnsRecords": {"A": [], "MX": ["10 mail.a.example", "x"]}}),
     {"url": "dns:a.example?type=MX", "alert_text_lookup": "10 mail.a.example",
      "alert_condition": "url_no_text"}, ["Expected records: 10 mail.a.example is kept"]),
    ("a ping", robot(type="PING", url="192.0.2.1"), {"url": "ping://192.0.2.1"}, []),
]  # fmt: skip


def gatus(conditions='"[STATUS] == 200"', more="", top=""):
    return (
        f"{top}endpoints:\n  - name: m\n    url: https://a.example\n"
        f"    conditions: [{conditions}]\n{more}"
    )


ANY = {"accepted_statuses": "200-399"}
CONDITIONS = [
    # what is dropped must not leave a check that calls a 503 up
    ('"[BODY].status == [BODY].x"', ANY, ["Condition on [BODY].status dropped", "200-399"]),
    ('"len([BODY].a) != 3"', ANY, ["Condition on len([BODY].a) dropped"]),
    ('"age([BODY].a) < 3"', ANY, ["Condition on age([BODY].a) dropped"]),
    ('"has([BODY].a) == maybe"', ANY, ["Condition on has([BODY].a) dropped"]),
    ('"len([BODY].a) > many"', ANY, ["Condition on len([BODY].a) dropped"]),
    ('"[BODY].a == "', ANY, ["Condition on [BODY].a dropped"]),
    ('"[RESPONSE_TIME] < soon"', ANY, ["Condition on [RESPONSE_TIME] dropped"]),
    ('"[CERTIFICATE_EXPIRATION] > soon"', ANY, ["Condition on [CERTIFICATE_EXPIRATION] dropped"]),
    ('"[STATUS] < any(300, 400)"', ANY, ["Condition on [STATUS] dropped"]),
    ('"[DOMAIN_EXPIRATION] > 48h"', {**ANY, "domain_alert_days": 2}, ["accepts 200-399"]),
    ('"[STATUS] == 200", "[CONTEXT].x == 1"', REFUSED, ["cannot evaluate"]),
    ('"[STATUS] == 200", "[IP] == 192.0.2.1"', REFUSED, ["to which address"]),
    ('"[BODY] == pat(*ok*)"', {"accepted_statuses": "100-599", "alert_text_lookup": "ok"}, []),
    ('"[CONNECTED] == true"', {"accepted_statuses": "100-599"}, []),
    ('"[CONNECTED] == false"', REFUSED, ["connection is refused"]),
    ('"[CONNECTED] != true"', REFUSED, ["connection is refused"]),
    # Gatus calls these up, or down, whatever is answered.
    ('"[STATUS] >= 200 && [STATUS] < 400"', ANY, ["Gatus does not know &&", "as it is meant"]),
    (
        '"[STATUS] == 200 || [STATUS] == 404"',
        {"accepted_statuses": "200,404"},
        ["Gatus does not know &&"],
    ),
    ('"[STATUS] == 200 || [BODY].ok == true"', REFUSED, ["cannot evaluate"]),
    ('"[STATUS]==200"', REFUSED, ["cannot evaluate"]),
    ('"[status] == 200"', {"accepted_statuses": "200"}, []),
    ('"[STATUS] == 200", "[STATUS] == 404"', REFUSED, ["No status code"]),
    ('"[STATUS] == 0"', REFUSED, ["No status code"]),
    ('"[STATUS] != 0"', {"accepted_statuses": "100-599"}, []),
    ('"[STATUS] == [BODY].code"', ANY, ["Condition on [STATUS] dropped"]),
    # sets and ranges
    ('"[STATUS] == any(200, 429)"', {"accepted_statuses": "200,429"}, []),
    ('"[STATUS] == pat(2*)"', {"accepted_statuses": "200-299"}, []),
    ('"[STATUS] >= 200", "[STATUS] < 300"', {"accepted_statuses": "200-299"}, []),
    ('"[STATUS] != 500"', {"accepted_statuses": "100-499,501-599"}, []),
    ('"200 == [STATUS]"', {"accepted_statuses": "200"}, []),
    ('"400 > [STATUS]"', {"accepted_statuses": "100-399"}, []),
    # units
    ('"[STATUS] == 200", "[DOMAIN_EXPIRATION] > 720h"', {"domain_alert_days": 30}, []),
    ('"[STATUS] == 200"', {"timeout": 10, "ssl_alert_days": None, "interval": 60}, []),
]


ASSERTED = [
    ("[BODY].status == UP", [("json", "$.status", "=", "UP")]),
    ("[BODY].a-b[0].c != 5", [("json", "$['a-b'][0].c", "!=", "5")]),
    ("[BODY][1].n >= 2.5", [("json", "$[1].n", ">=", "2.5")]),
    ("5 < [BODY].n", [("json", "$.n", ">", "5")]),
    ("[BODY].s == pat(*a*b?)", [("json", "$.s", "matches", "(?s)^.*a.*b.$")]),
    ("[BODY].s != any(x.y, z)", [("json", "$.s", "not_matches", r"^(?:x\.y|z)$")]),
    ("[BODY] == pat(*a*b*)", [("body", None, "matches", "(?s)^.*a.*b.*$")]),
    ("[BODY] == OK", [("body", None, "=", "OK")]),
    ("len([BODY]) > 0", [("body", None, "not_empty", None)]),
    ("len([BODY].a) >= 1", [("json", "$.a", "not_empty", None)]),
    ("len([BODY].a) == 2", [("json", "$.a[1]", "exists", None),
                            ("json", "$.a[2]", "not_exists", None)]),
    ("len([BODY].a) < 2", [("json", "$.a[1]", "not_exists", None)]),
    ("len([BODY].a) == 0", [("json", "$.a", "exists", None), ("json", "$.a", "empty", None)]),
    ("len([BODY]) == 0", [("body", None, "matches", r'^(?:\[\s*\]|\{\s*\}|"")?$')]),
    ("len([body].A) > 0", [("json", "$.A", "not_empty", None)]),
    ("has([BODY].errors) == false", [("json", "$.errors", "not_exists", None)]),
    ("has([BODY].ok) == true", [("json", "$.ok", "exists", None)]),
    # A failure to Gatus, no warning.
    ("[CERTIFICATE_EXPIRATION] > 48h", [("certificate_days", None, ">=", "2")]),
    ("[CERTIFICATE_EXPIRATION] > 172800000", [("certificate_days", None, ">=", "2")]),
    ("36h < [CERTIFICATE_EXPIRATION]", [("certificate_days", None, ">=", "2")]),
    ("[RESPONSE_TIME] < 2s", [("response_time", None, "<", "2000")]),
    ("[RESPONSE_TIME] <= 500", [("response_time", None, "<=", "500")]),
    ("1m30s > [RESPONSE_TIME]", [("response_time", None, "<", "90000")]),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "assertions"), ASSERTED)
def test_conditions_of_gatus_on_the_answer_become_assertions(condition, assertions):
    wanted = {"assertions": tuple(Assertion(*parts) for parts in assertions)}
    check(gatus(f'"[STATUS] == 200", "{condition}"'), wanted | {"slow_after": None}, [])


@pytest.mark.parametrize(
    ("query", "operator", "assertions"),
    [
        ("status", None, [("json", "$.status", "=", "ok")]),
        # Uptime Kuma fails where there is nothing, null or a list.
        (
            "$.data[0].`a-b`",
            "!=",
            [
                ("json", "$.data[0]['a-b']", "!=", "ok"),
                ("json", "$.data[0]['a-b']", "matches", r"^([^\[{]|$)"),
                ("json", "$.data[0]['a-b']", "!=", "null"),
            ],
        ),
        # A text is compared too.
        ("", "contains", [("body", None, "contains", "ok")]),
        ("$", "==", [("body", None, "matches", r'^\s*"?ok"?\s*$')]),
        ("$", "!=", [("body", None, "not_matches", r'^\s*"?ok"?\s*$')]),
        ("$count(items)", "==", None),
        ("items[id=1].name", "==", None),
        ("total-used", ">", None),
        ("a & b", "==", None),
    ],
)
def test_json_queries_of_uptime_kuma_that_are_paths_become_assertions(query, operator, assertions):
    more = {"jsonPathOperator": operator} if operator else {}
    entry = kuma(type="json-query", jsonPath=query, expectedValue="ok", **more)
    wanted = {"assertions": tuple(Assertion(*parts) for parts in assertions or ())}
    judged = check(entry, wanted if assertions else REFUSED,
                   [] if assertions else ["more than a path"])  # fmt: skip
    listed = bool(assertions) and assertions[0][0] == "json"
    assert ("the list on the way" in " ".join(judged.remarks)) is listed


ALERTING = f"""alerting:
  slack:
    webhook-url: {HOOK}default
    overrides: [{{group: core, webhook-url: {HOOK}core}}]
    default-alert: {{failure-threshold: 4, success-threshold: 5, minimum-reminder-interval: 1h}}
  discord: {{webhook-url: "https://discord.com/api/webhooks/1/a"}}
  teams: {{webhook-url: "${{TEAMS}}"}}
  email: {{default-alert: {{enabled: false}}, to: "a@b.example"}}
  ntfy: {{topic: ops, token: tk_1}}
  gotify: {{server-url: "https://push.example", token: A.x}}
  pushover: {{application-token: {"a" * 30}, user-key: {"u" * 30}}}
  pagerduty: {{integration-key: {"R" * 32}}}
  opsgenie: {{api-key: {GENIE}, priority: P2}}
"""
KINDS = [
    ("icmp://192.0.2.1", "", "'[CONNECTED] == true'", {"url": "ping://192.0.2.1"}),
    ("tls://a.example:993", "    client: {insecure: true}\n", "'[CERTIFICATE_EXPIRATION] > 168h'",
     {"url": "tls://a.example:993", "verify_tls": False, "ssl_alert_days": None,
      "assertions": (Assertion("certificate_days", None, ">=", "7"),)}),
    ("starttls://a.example:587", "", "'[CONNECTED] == true'",
     {"url": "tls://a.example:587", "starttls": "smtp"}),
    ("8.8.8.8", "    dns: {query-name: a.example., query-type: mx}\n",
     "'[DNS_RCODE] == NOERROR', '[BODY] == pat(*mail.a.example.*)'",
     {"url": "dns://8.8.8.8/a.example.?type=MX",
      "assertions": (Assertion("answer", None, "matches",
                               r"^[0-9]+ .*mail\.a\.example\..*$"),)}),
    # 192.0.2.10 is another address.
    ("[2001:db8::1]:53", "    dns: {query-name: a.example}\n", "'[BODY] == 192.0.2.1'",
     {"url": "dns://[2001:db8::1]:53/a.example?type=A", "alert_text_lookup": None,
      "assertions": (Assertion("answer", None, "=", "192.0.2.1"),)}),
    *[("8.8.8.8", f"    dns: {{query-name: a.example, query-type: {type_}}}\n",
       f"'[BODY] {condition}'", {"assertions": (Assertion("answer", None, op, pattern),)})
      for type_, condition, op, pattern in [
        ("A", "!= 192.0.2.1", "!=", "192.0.2.1"),
        ("A", "== any(192.0.2.1, 192.0.2.2)", "matches", r"^192\.0\.2\.1$|^192\.0\.2\.2$"),
        ("AAAA", "== pat(2001:*)", "matches", "^2001:.*$"),
        ("MX", "== mail.a.example.", "matches", r"^[0-9]+ mail\.a\.example\.$"),
        ("NS", "!= ns.a.example", "not_matches", r"^ns\.a\.example\.$"),
        ("SRV", "== sip.a.test.:5060", "matches", r"^[0-9]+ [0-9]+ 5060 sip\.a\.test\.$"),
        ("SRV", "== pat(sip*)", "matches", "^[0-9]+ [0-9]+ [0-9]+ sip.*$"),
        ("TXT", "== pat(v=spf1*)", "matches", '^.*"v=spf1.*".*$'),
      ]],
    # Gatus waits for a reply, which is nothing that connecting alone can check.
    ("tcp://a.example:6379", "    body: PING\n", "'[BODY] == pat(*PONG*)'", REFUSED),
    ("tls://a.example:6379", "    body: PING\n", "'[CONNECTED] == true'", REFUSED),
    # A name that others must not see. Imported without it, the check would ask for the opposite.
    ("8.8.8.8", "    dns: {query-name: a.example}\n", "'len([BODY]) == 0'", REFUSED),
    ("8.8.8.8", "    dns: {query-name: a.example}\n", "'len([BODY]) > 0'",
     {"url": "dns://8.8.8.8/a.example?type=A", "assertions": ()}),
    ("icmp://192.0.2.1", "", "'len([BODY]) == 0'", {"url": "ping://192.0.2.1"}),
    ("8.8.8.8", "    dns: {query-name: a.example}\n", "'[DNS_RCODE] == NXDOMAIN'", REFUSED),
]  # fmt: skip


@pytest.mark.parametrize(("url", "more", "conditions", "wanted"), KINDS)
def test_gatus_checks_more_than_http(url, more, conditions, wanted):
    text = f"endpoints:\n  - name: m\n    url: '{url}'\n    conditions: [{conditions}]\n{more}"
    refusal = "send a body to a port" if "body" in more else "missing in DNS"
    check(text, wanted, [refusal] if wanted == REFUSED else [])


HEADER = "    headers: {Authorization: 'Bearer ${API_KEY}'}\n"
SLACK = Pair("slack", f"{HOOK}default")
DISCORD = Pair("discord", "https://discord.com/api/webhooks/1/a")
GATUS = [
    ("the group's channel", "    group: core\n    alerts: [{type: slack}]\n",
     {"alerts": (Pair("slack", f"{HOOK}core"),)}, []),
    ("another group's", "    group: other\n    alerts: [{type: slack}]\n",
     {"alerts": (SLACK,)}, []),
    ("its own channel", f"    group: core\n    alerts: [{{type: slack, provider-override: "
     f"{{webhook-url: '{HOOK}own'}}}}]\n", {"alerts": (Pair("slack", f"{HOOK}own"),)}, []),
    ("phones and people on call", "    alerts: [{type: ntfy}, {type: gotify}, {type: pushover},"
     " {type: pagerduty}, {type: opsgenie}]\n",
     {"alerts": (Pair("ntfy", "https://tk_1@ntfy.sh/ops"),
                 Pair("gotify", "https://push.example/?token=A.x"),
                 Pair("pushover", f"{'u' * 30}/{'a' * 30}"), Pair("pagerduty", "R" * 32),
                 Pair("opsgenie", GENIE))}, []),
    ("thresholds and reminders", "    interval: 5m\n    alerts: [{type: slack}]\n",
     {"confirmations": 3, "remind_after": 60},
     ["pause of 5 min", "Success threshold 5 dropped", "send-on-resolved"]),
    ("two thresholds", "    alerts: [{type: slack}, {type: discord, failure-threshold: 2,"
     " description: d, send-on-resolved: true}]\n",
     {"confirmations": 1}, ["Failure thresholds 2, 4: 2 counts", "descriptions dropped"]),
    ("on by a variable", "    alerts: [{type: discord, enabled: '${ON}'}]\n",
     {"alerts": (DISCORD,)}, ["environment variable ON", "It is kept."]),
    ("a threshold in a variable", "    alerts: [{type: discord, failure-threshold: '${N}'}]\n",
     {"confirmations": 2}, ["environment variable N"]),
    ("off", "    alerts: [{type: discord, enabled: false}]\n", {"alerts": ()}, []),
    ("off by default", "    alerts: [{type: email}]\n", {"alerts": ()}, []),
    ("on against the default", "    alerts: [{type: email, enabled: true}]\n",
     {"alerts": (Pair("email", "a@b.example"),)}, []),
    ("an address in a variable", "    alerts: [{type: teams}]\n", {"alerts": ()},
     ["environment variable TEAMS", "It is dropped."]),
    ("an address elsewhere", "    alerts: [{type: twilio}]\n", {"alerts": ()},
     ["does not contain its address"]),
    ("a channel that Wakeful lacks", "    alerts: [{type: discord}, {type: ilert, x: y}]\n",
     {"alerts": (DISCORD,)}, ["ilert"]),
    ("a variable in a header", HEADER, REFUSED, ["environment variable API_KEY", "--env"]),
    ("a variable in the body", "    body: '${BODY}'\n", REFUSED, ["environment variable BODY"]),
    ("a variable as interval", "    interval: ${INTERVAL}\n", REFUSED, ["INTERVAL"]),
    ("a variable with a default", "    interval: ${INTERVAL:-5m}\n", {"interval": 300}, []),
    ("a variable in an odd form", "    body: '${A:?${B:=1}}'\n", REFUSED, ["environment variable"]),
    ("a variable in a default", "    body: '${A:=x${B:=1}}'\n", {"request_body": "x1"}, []),
    ("a variable without a value in a default", "    body: '${A:-${B}}'\n", REFUSED,
     ["environment variable B"]),
    ("a proxy in a variable", "    client: {proxy-url: '${P}'}\n", RUNS, ["Proxy dropped"]),
    ("a time limit in a variable", "    client: {timeout: '${T}'}\n", REFUSED,
     ["environment variable T"]),
    ("thresholds without a channel", "    alerts: [{type: matrix, failure-threshold: 5}]\n",
     {"confirmations": 4, "alerts": ()}, ['"matrix"']),
    ("placeholders of a body",
     "    group: g\n    body: '[ENDPOINT_NAME] [ENDPOINT_GROUP] [ENDPOINT_URL]'\n",
     {"request_body": "m g https://a.example"}, []),
    ("a random body", "    body: '[RANDOM_STRING_LENGTH_8]'\n", REFUSED, ["random text"]),
    ("a variable in a name of DNS", "    dns: {query-name: 'a.${ZONE}', query-type: A}\n", REFUSED,
     ["environment variable ZONE"]),
    ("a GraphQL query", "    graphql: true\n    body: '{a}'\n", REFUSED, ["GraphQL"]),
    ("a certificate of the client", "    client: {tls: {certificate-file: a.pem}}\n", REFUSED,
     ["client option tls"]),
    ("a header with several values", "    headers: {X-A: [a, b]}\n", REFUSED, ["headers"]),
    ("enabled by a variable", "    enabled: ${ON}\n", PAUSED, ["environment variable ON"]),
    ("not enabled", "    enabled: false\n", PAUSED, []),
    ("enabled without a value", "    enabled:\n", RUNS, []),
    ("windows", "    maintenance-windows: [{start: '23:00', duration: 1h}]\n", RUNS,
     ["Maintenance windows dropped"]),
    ("display options", "    ui: {hide-url: true}\n", RUNS, ["Display options"]),
    ("what nobody knows yet", "    fancy: 1\n", RUNS, ['Setting "fancy" dropped']),
    ("an option of the client", "    client: {proxy-url: 'http://p'}\n", RUNS, ["Proxy dropped"]),
    ("a login of the client", "    client: {oauth2: {client-id: a}}\n", REFUSED, ["oauth2"]),
    ("an interval that is none", "    interval: often\n", REFUSED, ['interval "often"']),
]  # fmt: skip


TABLES = {
    "kuma": KUMA, "stack": BETTER_STACK, "robot": UPTIME_ROBOT,
    "gatus": [(name, gatus(more=more, top=ALERTING), *row) for name, more, *row in GATUS],
    "condition": [(name, gatus(name), *row) for name, *row in CONDITIONS],
}  # fmt: skip
ROWS = [
    pytest.param(*row, id=f"{tool}: {name}") for tool, rows in TABLES.items() for name, *row in rows
]


@pytest.mark.parametrize(("data", "wanted", "sentences"), ROWS)
def test_what_a_tool_writes_keeps_its_meaning_or_is_named(data, wanted, sentences):
    check(data, wanted, sentences)


def test_variables_are_filled_in_where_they_are_given():
    data = gatus(more=HEADER + "    body: '$$5 ${API_KEY}'\n")
    remarks = ["Filled with environment variables: API_KEY"]
    variables = {"API_KEY": "a$b"}
    validated = check(data, {"request_body": "$5 a$b"}, remarks, variables=variables)
    assert validated.fields["request_headers"] == (Pair("Authorization", "Bearer a$b"),)
    assert "a$b" not in " ".join([*validated.remarks, *validated.settings])


def test_what_is_of_all_endpoints_of_gatus_is_said_once():
    top = "maintenance: {start: '23:00', duration: 1h, every: [Monday]}\n"
    assert "maintenance of all endpoints is dropped" in reading(gatus(top=top)).remarks[0]
    assert not reading(gatus(top="maintenance: {enabled: false, start: '23:00'}\n")).remarks
    (remark,) = reading(gatus(top="announcements: [{type: outage, message: m}]\n")).remarks
    assert "Announcements are dropped" in remark
    (remark,) = reading(gatus(top="alerting: {gotify: {priority: 8, token: t}}\n")).remarks
    assert "Priorities of alerts are dropped" in remark


def test_what_of_uptime_kuma_stays_there_is_said_once():
    assert "Status pages, incidents, maintenance, proxies" in reading(kuma()).remarks[-1]


def test_what_gatus_does_not_check_itself_is_a_heartbeat_and_steps_are_refused():
    more = (
        "external-endpoints: [{name: job, token: t, alerts: [{type: discord}]}]\n"
        "suites: [{name: steps, endpoints: []}]\n"
    )
    *_endpoints, job, steps = reading(gatus(more=more)).candidates
    assert (job.name, job.url, job.refusal) == ("job", "heartbeat:", "")
    assert "first failure of a job" in " ".join(job.remarks)
    assert "between rechecks" not in " ".join(job.remarks)  # nothing is rechecked
    assert (steps.name, steps.url) == ("steps", "")
    assert "several steps" in steps.refusal


CONFIG_MAP = """---
apiVersion: v1
kind: ConfigMap
metadata: {name: gatus-endpoints, labels: {gatus.io/enabled: "true"}}
data:
  alerting.yaml: |
    alerting: {discord: {webhook-url: "https://discord.com/api/webhooks/1/a"}}
  web.yaml: |
    endpoints:
      - name: m
        url: https://a.example
        conditions: ["[STATUS] == 200"]
        alerts: [{type: discord}]
"""
HELM = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
spec:
  values:
    config:
      endpoints:
        - {name: m, url: "https://a.example", conditions: ["[STATUS] == 200"]}
"""
SERVICE_MONITOR = """apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
spec:
  endpoints:
    - port: web
"""


@pytest.mark.parametrize("data", [CONFIG_MAP, HELM, f"{SERVICE_MONITOR}---\n{HELM}"])
def test_gatus_is_found_in_the_objects_of_kubernetes(data):
    assert reading(data).source == "Gatus"
    check(data, {"accepted_statuses": "200"}, [])


def test_parts_of_a_configuration_are_merged_as_gatus_merges_files():
    first = f'alerting: {{slack: {{webhook-url: "{HOOK}x"}}}}\n{gatus()}'
    second = (
        'alerting: {discord: {webhook-url: "https://discord.com/api/webhooks/1/a"}}\nendpoints:\n'
        "  - {name: n, url: 'https://b.example', conditions: ['[STATUS] == 200'],"
        " alerts: [{type: slack}, {type: discord}]}\n"
    )
    whole = f"{first}---\n{second}"
    check(whole, {}, [])
    check(whole, {"alerts": (Pair("slack", f"{HOOK}x"), DISCORD)}, [], name="n")
    broken = CONFIG_MAP + "  other.yaml: |\n    name: [\n    a\n"
    check(broken, {"accepted_statuses": "200"}, [])


UPPTIME = """owner: someone
repo: status
sites:
  - {name: plain, url: "https://shop.example"}
  - name: m
    url: https://api.example/
    method: POST
    headers: ["Content-Type: application/json"]
    body: '{"ping":1}'
    expectedStatusCodes: [200, 201]
    maxRedirects: 0
    maxResponseTime: 900
    assignees: [ada]
    __dangerous__insecure: true
    __dangerous__body_down_if_text_missing: "Hello"
  - {name: mail, check: tcp-ping, url: mail.example, port: 25}
  - {name: ping, check: icmp-ping, url: a.example}
  - {name: tls, check: ssl, url: "https://a.example"}
  - {name: secret, url: $SECRET_SITE}
"""


def test_upptime():
    wanted = {
        "interval": 300, "accepted_statuses": "200,201", "follow_redirects": False,
        "slow_after": 900, "alert_condition": "url_no_text", "verify_tls": False,
        "ssl_alert_days": None, "request_body": '{"ping":1}',
    }  # fmt: skip
    check(UPPTIME, wanted, ["Assignees"])
    check(UPPTIME, {"url": "tcp://mail.example:25"}, [], name="mail")
    check(UPPTIME, {"url": "ping://a.example"}, [], name="ping")
    check(UPPTIME, {"url": "tls://a.example:443", "ssl_alert_days": 14}, [], name="tls")
    both = UPPTIME.replace("    assignees", "    __dangerous__body_down: Error\n    assignees")
    check(both, {"alert_text_lookup": "Hello"}, ["of two, one is dropped"])
    check(UPPTIME, {"follow_redirects": True}, [], name="plain")
    check(f"{UPPTIME}notifications: [{{type: slack}}]\n", {}, ["Notifications and assignees"])
    fewer = UPPTIME.replace("maxRedirects: 0", "maxRedirects: 3")
    check(fewer, {"follow_redirects": True}, ["At most 3 redirects"])
    check(UPPTIME, REFUSED, ["environment variable SECRET_SITE"], name="secret")


KUVASZ = f"""integrations:
  slack:
    - {{name: ops, webhook-url: "{HOOK}x", global: true}}
    - {{name: off, webhook-url: "{HOOK}y", enabled: false}}
---
http-monitors:
  - name: m
    url: https://a.example
    uptime-check-interval: 300
    enabled: false
    ssl-check-enabled: false
    ssl-expiry-threshold: 30
    expected-keyword: ok
    integrations: ["slack:off", "email:elsewhere"]
    expected-headers: {{X: y}}
tcp-monitors:
  - {{name: t, host: db.example, port: 5432, uptime-check-interval: 60, timeout-ms: 5000}}
icmp-monitors:
  - {{name: i, host: db.example, uptime-check-interval: 60, timeout-ms: 3000}}
push-monitors:
  - {{name: p, uptime-check-interval: 60}}
"""


def test_kuvasz():
    wanted = {**PAUSED, "interval": 300, "ssl_alert_days": None, "alert_text_lookup": "ok"}
    sentences = ["response headers dropped", "case-sensitive", "does not contain its address"]
    validated = check(KUVASZ, wanted, sentences)
    assert [pair.value for pair in validated.fields["alerts"]] == ["ops"]
    check(KUVASZ, {"url": "tcp://db.example:5432", "timeout": 5}, [], name="t")
    check(KUVASZ, {"url": "ping://db.example", "timeout": 3}, [], name="i")
    check(KUVASZ, REFUSED, ["Push"], name="p")
    on = KUVASZ.replace("ssl-check-enabled: false", "ssl-check-enabled: true")
    check(on.replace("threshold: 30", "threshold: 0"), {"ssl_alert_days": 0}, [])
    more = KUVASZ.replace(
        "keyword: ok",
        "keyword: ok\n    expected-keyword-case-sensitive: true\n    force-no-cache: true",
    )
    judged = check(more, {"request_headers": (Pair("Cache-Control", "no-cache"),)}, [])
    assert "case-sensitive" not in " ".join(judged.remarks)


def test_checkmate():
    record = {
        "_id": "1", "name": "m", "type": "http", "url": "https://a.example", "interval": 60_000,
        "isActive": False, "ignoreTlsErrors": True, "notifications": ["1"],
    }  # fmt: skip
    wanted = {**PAUSED, "interval": 60, "verify_tls": False}
    check({"data": {"monitors": [record]}}, wanted, ["Notifications dropped"])
    compared = record | {"jsonPath": "a.b", "expectedValue": "x", "matchMethod": "equal"}
    check([compared], REFUSED, ["compare the response"])
    check([compared | {"useAdvancedMatching": False}], {"alert_text_lookup": None}, [])
    included = record | {"expectedValue": "x", "matchMethod": "include"}
    check([included], {"alert_text_lookup": "x"}, [])
    check([record | {"type": "ping", "url": "a.example"}], {"url": "ping://a.example"}, [])
    more = {
        "method": "HEAD", "customUpCodes": [401], "statusWindowSize": 5,
        "statusWindowThreshold": 80, "cpuAlertThreshold": 90, "diskAlertCounter": 5,
    }  # fmt: skip
    wanted = {"request_method": "HEAD", "accepted_statuses": "200-299,401", "confirmations": 3}
    validated = check([record | more], wanted, ["Down after 4 of 5 checks"])
    assert "Alert" not in " ".join(validated.remarks)


def test_the_csv_of_checkmate_has_milliseconds():
    data = "type,name,url,interval,port,expectedValue,jsonPath,matchMethod\nhttp,m,a.example,300000"
    check(f"{data},,,,\n", {"interval": 300}, ["Ignored columns: expectedValue"])


def test_targets_of_prometheus():
    for data in (
        [{"targets": ["https://a.example", "b.example:9100"], "labels": {"env": "prod"}}],
        "- targets: [https://a.example, b.example:9100]\n  labels: {env: prod}\n",
    ):
        fits, refused = reading(data).candidates
        assert (fits.url, fits.fields["tags"]) == ("https://a.example", ("env: prod",))
        assert "no scheme" in refused.refusal


def test_jobs_of_prometheus_keep_their_interval_and_the_kind_of_check():
    data = """global: {scrape_interval: 10m}
scrape_configs:
  - job_name: web
    metrics_path: /probe
    scrape_interval: 5m
    static_configs: [{targets: [https://a.example]}]
  - job_name: pings
    metrics_path: /probe
    params: {module: [icmp_ipv4]}
    static_configs: [{targets: [https://b.example]}]
  - job_name: elsewhere
    metrics_path: /probe
    file_sd_configs: [{files: [x.json]}]
    static_configs: [{targets: [https://c.example]}]
  - {job_name: names, metrics_path: /probe, params: {module: [dns_udp]},
     static_configs: [{targets: [192.0.2.53]}]}
  - {job_name: calls, metrics_path: /probe, params: {module: [grpc]},
     static_configs: [{targets: ["d.example:50051"]}]}
  - job_name: node
    static_configs: [{targets: [https://d.example]}]
"""
    whole = reading(data)
    web, ping, other, name, call = whole.candidates
    assert (web.fields["interval"], other.fields["interval"]) == ("300", "600")
    assert ping.url == "ping://b.example"
    assert "is in a module" in name.refusal
    assert "gRPC" in call.refusal
    assert "job elsewhere that are not in the file" in whole.remarks[1]


@pytest.mark.parametrize(
    ("columns", "line", "wanted", "sentence"),
    [
        ("url,type", "a.example,keyword", REFUSED, "no text to find"),
        ("url,type,keyword", "a.example,keyword_absence,", REFUSED, "no text to find"),
        ("url,keyword type,keyword", "a.example,contains,x", REFUSED, 'keyword type "contains"'),
        ("url,monitor_type", "a.example,status", {"accepted_statuses": "200-299"}, ""),
        ("url,status", "a.example,Disabled", PAUSED, ""),
        ("url,status", "a.example,up", RUNS, ""),
        ("url", "", REFUSED, "The line has no URL."),
        ("url,type", "a.example,push", REFUSED, '"push"'),
        ("url,type,port", "a.example,tls,993", {"url": "tls://a.example:993"}, ""),
        ("url,type", "a.example,dns", {"url": "dns:a.example?type=A"}, ""),
        ("url", "dns:a.example", {"url": "dns:a.example"}, ""),
        ("url,type", "heartbeat:,", {"url": "heartbeat:"}, ""),
        ("url,interval", "a.example,often", REFUSED, '"often"'),
        ("url,method,notes", "a.example,head,x", {"request_method": "HEAD", "notes": "x"}, ""),
        ("url,verify_ssl", "a.example,No", {"verify_tls": False}, ""),
        ("url,a,b,c,d,e,f,g,h,i", "a.example", RUNS, "Ignored columns: a, b, c, d, e, f, g, h and"),
    ],
)
def test_columns_that_change_a_check(columns, line, wanted, sentence):
    check(f"name,{columns}\nm,{line}\n", wanted, [sentence])


def test_comments_and_bullets_of_a_list_are_left_out():
    lines = (
        "# Production\n- https://one.example\n* two.example # main\n1. Three, https://three.example\n"
        "Server # 4, https://four.example/#top\n"
    )
    entries = [(candidate.name, candidate.url) for candidate in reading(lines).candidates]
    assert entries == [
        ("", "https://one.example"),
        ("", "two.example"),
        ("Three", "https://three.example"),
        ("Server # 4", "https://four.example/#top"),
    ]


def test_names_with_colons_before_urls_are_a_list():
    shop, api = reading("Shop: https://shop.example\nThe API: https://api.example\n").candidates
    assert (shop.name, api.name, api.url) == ("Shop", "The API", "https://api.example")


def test_a_list_has_the_warning_of_a_certificate_that_a_form_starts_with():
    https, plain, tcp = reading("a.example\nhttp://b.example\ntcp://c.example:1").candidates
    assert https.fields["ssl_alert_days"] == "14"
    assert "ssl_alert_days" not in {**plain.fields, **tcp.fields}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("services:\n  web:\n    image: nginx\n    ports: ['80:80']\n", "this YAML"),
        (SERVICE_MONITOR, "this YAML"),
        ("- name: a\n  hosts: all\n", "this YAML"),
        ("endpoints: [{name: a}]\nendpoints: [{name: b}]\n", '"endpoints" twice.*in line 2'),
        ('{"openapi": "3.1.0", "paths": {}}', "this JSON"),
        ("<?xml version='1.0'?><a/>", "XML or HTML"),
        ("<!doctype html>", "XML or HTML"),
        ('resource "x" "y" {\n' + '  a = "b"\n' * 79 + "}\n", "most of its lines have no URL"),
        ("[Unit]\nDescription=x\n", "not valid JSON"),
    ],
)
def test_another_file_is_refused_in_one_sentence(data, sentence):
    with pytest.raises(NotReadable, match=sentence):
        reading(data)


def test_a_notification_of_several_monitors_becomes_a_contact():
    slack = notification(7, "Ops", type="slack", slackwebhookURL=f"{HOOK}x")
    mail = notification(8, "Ops", type="smtp", smtpTo="a@b.example")
    record = {"type": "http", "url": "https://a.example", "maxretries": 0}
    both = {"notificationIDList": {"7": True, "8": True}}
    monitors = [record | both, record | both, record | {"notificationIDList": {"7": True}}]
    whole = reading({"notificationList": [slack, mail], "monitorList": monitors})
    assert whole.contacts == {
        "Ops": [Pair("slack", f"{HOOK}x")],
        "Ops 2": [Pair("email", "a@b.example")],
    }
    assert [pair.value for pair in whole.candidates[0].fields["alerts"]] == ["Ops", "Ops 2"]
    assert [pair.value for pair in whole.candidates[2].fields["alerts"]] == ["Ops"]
