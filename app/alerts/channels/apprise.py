"""Everything else, through Apprise: in a process of its own.

Apprise opens its connections itself, so an address policy can only hold where every connection of
the process is judged; it has no time limit as a whole, which a process can be given; and it costs
some 40 MB, which go away again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from app.alerts import masking
from app.alerts.channels import answer
from app.alerts.channels.answer import Answer
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.channels.net import TOTAL_SECONDS
from app.alerts.messages import Tone

_KINDS = {Tone.BAD: "failure", Tone.GOOD: "success", Tone.WARNING: "warning", Tone.PLAIN: "info"}
_ROOT = Path(__file__).resolve().parents[3]


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    message = outgoing.message
    policy = tools.network.policy
    task = {
        "url": outgoing.value,
        "title": message.title,
        "body": "\n".join(message.lines()),
        "kind": _KINDS[message.tone],
        "allow": [*sorted(policy.words), *(str(network) for network in policy.networks)],
    }
    try:
        done = subprocess.run(  # the URL holds secrets, so it goes by standard input
            [sys.executable, "-m", "app.alerts.channels.apprise_child"],
            input=json.dumps(task).encode(),
            capture_output=True,
            timeout=TOTAL_SECONDS,
            cwd=_ROOT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return answer.retry("The service gave no answer in time.")
    return _read(done, masking.secrets_in_url(outgoing.value))


def _read(done: subprocess.CompletedProcess[bytes], secrets: list[str]) -> Answer:
    """Apprise says only yes or no; its log tells why."""
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return answer.retry(f"Apprise stopped without an answer (exit status {done.returncode}).")
    said = masking.clean(told["log"], secrets)
    if told["outcome"] == "delivered":
        return answer.delivered("Apprise says that it was sent.")
    if told["outcome"] == "permanent":
        return answer.permanent(said)
    return answer.retry(said or "Apprise says that it could not be sent, and not why.")
