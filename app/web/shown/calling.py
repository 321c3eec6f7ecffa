"""Commands with which a job calls its heartbeat, to copy, for the usual schedulers and
languages.
"""

from __future__ import annotations

from typing import NamedTuple

from app.i18n import N_, _
from app.records import Monitor


class CallCommand(NamedTuple):
    title: str
    text: str


_JOB = "/usr/local/bin/job"
_CRON = "0 3 * * *"
_COMMANDS = (
    (N_("cron"), "{cron} {job} && curl -fsS -m 10 --retry 5 -o /dev/null {url}"),
    (
        N_("cron, with the exit status and the output"),
        # A file, because long output does not fit into an argument. No %, because that is a line
        # end in a crontab.
        "{cron} out=$(mktemp); {job} > $out 2>&1; "
        "curl -fsS -m 10 --retry 5 -o /dev/null --data-binary @$out {url}/$?; rm $out",
    ),
    ("curl", "curl -fsS -m 10 --retry 5 {url}"),
    ("wget", "wget -q -T 10 -t 5 -O /dev/null {url}"),
    (
        "systemd",
        "[Unit]\nOnFailure=heartbeat-failed.service\n\n[Service]\nType=oneshot\n"
        "ExecStartPre=-/usr/bin/curl -fsS -m 10 --retry 5 {url}/start\n"
        "ExecStart={job}\n"
        "ExecStopPost=/usr/bin/curl -fsS -m 10 --retry 5 {url}/${{EXIT_STATUS}}\n\n"
        "# heartbeat-failed.service, for a job that cannot even be started\n[Service]\n"
        "Type=oneshot\nExecStart=/usr/bin/curl -fsS -m 10 --retry 5 {url}/fail",
    ),
    (
        "PowerShell",
        # On Windows, exit codes may be negative or above 255, and PowerShell 5.1 does not have
        # -MaximumRetryCount.
        "& C:\\Jobs\\job.exe\n"
        "$end = if ($LASTEXITCODE -eq 0) {{ '' }} else {{ '/fail' }}\n"
        'Invoke-RestMethod -Uri "{url}$end" -TimeoutSec 10',
    ),
    (
        "Python",
        "import urllib.request\n\n"
        'urllib.request.urlopen("{url}", timeout=10)',
    ),
    (
        N_("GitHub Actions"),
        "- name: Report to Wakeful\n  if: always()\n"
        "  run: curl -fsS -m 10 --retry 5 ${{{{ secrets.PING_URL }}}}"
        "${{{{ job.status != 'success' && '/fail' || '' }}}}\n"
        "# PING_URL, a secret of the repository: {url}",
    ),
    (
        N_("Kubernetes CronJob"),
        "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: job\nspec:\n"
        '  schedule: "{cron}"\n  jobTemplate:\n    spec:\n      template:\n        spec:\n'
        "          restartPolicy: Never\n          containers:\n            - name: job\n"
        "              image: job-image-with-curl\n              command:\n"
        "                - /bin/sh\n                - -c\n"
        "                - job; curl -fsS -m 10 --retry 5 {url}/$?",
    ),
)  # fmt: skip


def commands_of(monitor: Monitor) -> list[CallCommand]:
    cron = next((line for line in monitor.schedule if len(line.split()) == 5), _CRON)
    return [
        CallCommand(_(title), text.format(cron=cron, job=_JOB, url=monitor.ping_url))
        for title, text in _COMMANDS
    ]
