"""A checker makes the checks of its place only if the place has its carrier.

The carrier of a place is what people chose, or what its first checker was started with. A checker
of another carrier would share the monitors with the right one, and its page would say what is not
true. Needs an application context.
"""

from __future__ import annotations

from datetime import datetime

from app.config import PREFIX
from app.db import places
from app.errors import Conflict
from app.i18n import N_, _
from app.records import Carrier

CHECKED_BY = {
    Carrier.LOCAL: N_("a checker on the database (wakeful checker)"),
    Carrier.QUEUE: N_("probers on a queue (wakeful checker --carrier queue)"),
    Carrier.AGENT: N_("an agent (wakeful agent)"),
}


class OtherCarrier(Conflict):
    """The place of this checker is checked in another way. The text names it and the ways out."""


def join(location: str, own: Carrier, now: datetime) -> None:
    """Add the place of a checker with its carrier ``own``, unless it is there; raises OtherCarrier
    if it is there with another one.
    """
    if places.carrier_of(location) is None:
        places.add(location, own, now)
    stored = places.carrier_of(location)
    if stored != own:
        raise OtherCarrier(_refusal(location, own, str(stored)))


def _refusal(location: str, own: Carrier, stored: str) -> str:
    return _(
        "The place %(place)s is checked by %(stored)s, not by %(own)s. Set %(prefix)sLOCATION to "
        'another place, or change "Checked by" of this one under Settings, Places.',
        place=location,
        stored=_(CHECKED_BY[Carrier(stored)]) if stored in CHECKED_BY else stored,
        own=_(CHECKED_BY[own]),
        prefix=PREFIX,
    )
