"""Verifies the gateway's webhooks and decides the response.

It needs only the standard library, and knows no framework: copy it.
"""
import hashlib
import hmac
import json
import logging
import re
import time
import unicodedata
from dataclasses import dataclass
from datetime import datetime

MAX_BODY = 1 << 20  # bytes
TOLERANCE = 300  # seconds between the signature's timestamp and our clock, in either direction
MAX_SIGNATURES = 8  # two during a rotation; each one costs a comparison

log = logging.getLogger("gateway.webhook")


@dataclass(frozen=True)
class Secret:
    key: str
    not_after: float | None = None  # the last time at which the key is accepted, in Unix seconds


@dataclass(frozen=True)
class Event:
    id: str
    kind: str  # empty if the event has none
    resource_id: str  # of the transaction, transfer or subscription; empty if the event has none
    data: dict


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: str


def secrets_from(env):
    """Reads the signing secrets from the environment.

    They are GATEWAY_WEBHOOK_SECRET, and during a rotation also GATEWAY_WEBHOOK_OLD_SECRET,
    which is accepted until GATEWAY_WEBHOOK_OLD_SECRET_UNTIL.
    """
    secrets = [Secret(env.get("GATEWAY_WEBHOOK_SECRET", ""))]
    if old := env.get("GATEWAY_WEBHOOK_OLD_SECRET"):
        try:
            until = datetime.fromisoformat(env.get("GATEWAY_WEBHOOK_OLD_SECRET_UNTIL", ""))
            if until.tzinfo is None:
                raise ValueError("without a time zone")
        except ValueError as e:
            raise ValueError("GATEWAY_WEBHOOK_OLD_SECRET_UNTIL must be a time such as 2026-01-31T12:00:00Z") from e
        secrets.append(Secret(old, until.timestamp()))
    if any(len(s.key.encode()) < 8 for s in secrets):  # with an empty key anyone could sign
        raise ValueError("GATEWAY_WEBHOOK_SECRET or GATEWAY_WEBHOOK_OLD_SECRET is empty or shorter than 8 bytes: "
                         "set it to the signing secret of the endpoint")
    return secrets


def receive(timestamp, signature, body, secrets, store):
    """Receives one delivery.

    timestamp and signature are the headers X-Gateway-Timestamp and X-Gateway-Signature, or
    None. body has the bytes as they arrived, because the signature covers them. store(event)
    must return only when the event is committed, and must ignore an event whose id is
    stored; if it raises an exception, the gateway delivers the event again.
    """
    if len(body) > MAX_BODY:
        return too_large()
    if not body:
        log.error("the body is empty; did something read it before this handler?")
        return _refuse(400, "body_not_received")
    if reason := verify(timestamp or "", signature or "", body, secrets):
        log.warning("rejected: %s", reason)  # no more: anyone can send anything
        return _refuse(401, reason)
    event = _parse(body)
    if event is None:
        return _refuse(400, "invalid_event")
    try:
        store(event)
    except Exception:
        log.exception("event %s is not stored", event.id)
        return _refuse(503, "unavailable", {"Retry-After": "30"})
    return _reply(200, {"received": True})


def too_large():
    """Returns the response to a body of more than MAX_BODY bytes, which need not be read."""
    return _refuse(413, "body_too_large")


def verify(timestamp, signature, body, secrets, now=None):
    """Returns why the delivery is not authentic, or None."""
    now = time.time() if now is None else now
    # Frameworks join repeated headers with a comma. Proxies make equal copies; two different
    # timestamps are an attempt to mix two deliveries.
    stamps = {s.strip() for s in timestamp.split(",")} - {""}
    given = {s.encode("utf-8", "replace") for s in re.split(r"[\s,]+", signature)} - {b""}
    if not stamps or not given:
        return "missing_signature"
    stamp = stamps.pop()
    if stamps or not re.fullmatch("[0-9]{1,12}", stamp) or len(given) > MAX_SIGNATURES:
        return "invalid_signature"
    if not any(_signed(s, stamp, body, given) for s in secrets if s.key and (s.not_after is None or now <= s.not_after)):
        return "invalid_signature"
    return "stale_timestamp" if abs(int(now) - int(stamp)) > TOLERANCE else None


def _signed(secret, stamp, body, given):
    mac = hmac.new(secret.key.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    want = b"sha256=" + mac.encode()
    return any(hmac.compare_digest(want, s) for s in given)  # in constant time


def _parse(body):
    """Returns the event, or None if the body is not one."""
    try:
        event = json.loads(body.decode("utf-8-sig", "replace"))  # which skips a byte order mark
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    data = _object(event.get("data"))
    # The kind of a transfer's event is in type, and its data may be under object.
    kind = _text(data.get("event_type") or data.get("eventType") or event.get("type"))
    if event.get("event") not in ("transaction", "subscription"):
        data = _object(data.get("object")) or data
    event_id = _text(event.get("id"))
    return Event(event_id, kind, _text(data.get("id")), data) if event_id else None


def _object(value):
    return value if isinstance(value, dict) else {}


def _text(value):
    """Returns a value that any database can have as a key, or an empty string."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > 255:
        return ""
    return "" if any(c == "\ufffd" or unicodedata.category(c) in ("Cc", "Cs") for c in value) else value


def _reply(status, body, headers=None):
    return Reply(status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(body))


def _refuse(status, error, headers=None):
    return _reply(status, {"error": error}, headers)
