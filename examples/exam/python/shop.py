#!/usr/bin/env python3
"""A small merchant that sits the exam: orders, refunds and webhooks, in the standard library.

  mockgateway exam -- python3 shop.py
  mockgateway exam -- python3 shop.py --mistake no_dedup

What makes it correct, in the order of the code:

- An order is stored before it is charged, and charged with a reference that is
  derived from its id, so every repeat finds the first charge.
- No response, a 5xx or an unreadable body means "unknown", never "failed".
- book() is the only writer of an order's state. It takes a transaction that was
  read from the gateway, never sets the state back, and ships in the same commit.
- A webhook is only a hint to read the transaction. It gets 5xx until it is booked.
- A refund whose outcome is unknown is not repeated, but looked for, minutes later.

EXAM_MISTAKE or --mistake turns one of these rules off; see README.md.
"""
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import sqlite3
import sys
import threading
import time
import traceback
import urllib.parse
import uuid
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MISTAKES = """no_dedup memory_dedup new_ref unsigned swallow_errors no_amount_check late_overwrites
timeout_is_failure refund_repeated any_refund_is_full acks_unknown_order check_then_act
chargeback_ignored float_cents double_click""".split()
MISTAKE = os.environ.get("EXAM_MISTAKE", "")
# Reconciliation would hide these, so shops that make them have none.
NO_RECONCILIATION = ("late_overwrites", "swallow_errors", "acks_unknown_order")

RANK = {"unknown": 0, "review": 0, "pending": 0, "failed": 1, "paid": 2, "partially_refunded": 3, "refunded": 4, "charged_back": 5}
# What a transaction must at least have reached when its event is sent.
EVENT_RANK = {"transaction.cancelled": 1, "transaction.paid": 2, "transaction.refunded": 3, "transaction.chargedback": 5}
OPENING = ("transaction.created", "transaction.pending", "transaction.three_ds_required")

TIMEOUT = 1.5  # seconds for a request to the gateway
ATTEMPTS = 3
SETTLE = timedelta(minutes=5)  # a request that was sent so long ago is not executed any more


# The store. One connection behind one lock: a commit is durable, and no one sees half of one.

class Store:
    def __init__(self, folder):
        self.lock = threading.RLock()
        self.db = sqlite3.connect(os.path.join(folder, "shop.db"), isolation_level=None, check_same_thread=False)
        self.db.row_factory = sqlite3.Row
        self.db.executescript("""
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE IF NOT EXISTS orders (
                id TEXT PRIMARY KEY, amount INTEGER, currency TEXT, method TEXT, ref TEXT UNIQUE, body BLOB,
                sent INTEGER DEFAULT 0, tx TEXT, created TEXT, status TEXT DEFAULT 'unknown', paid INTEGER DEFAULT 0,
                refunded INTEGER DEFAULT 0, charged_back INTEGER DEFAULT 0, shipped INTEGER DEFAULT 0);
            CREATE TABLE IF NOT EXISTS refunds (
                order_id TEXT, id TEXT, amount INTEGER, state TEXT, before INTEGER, since TEXT, PRIMARY KEY (order_id, id));
            CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY);""")

    @contextlib.contextmanager
    def commit(self):
        with self.lock:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
                self.db.execute("COMMIT")
            except BaseException:
                self.db.execute("ROLLBACK")
                raise

    def all(self, sql, *args):
        with self.lock:
            return self.db.execute(sql, args).fetchall()

    def one(self, sql, *args):
        return next(iter(self.all(sql, *args)), None)

    def order(self, order_id):
        return self.one("SELECT * FROM orders WHERE id = ?", order_id)


# The gateway.

class Unknown(Exception):
    """No one knows whether the request was executed."""


class Rejected(Exception):
    """The gateway rejected the request; nothing was executed."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body
        self.duplicate = status == 409  # of a create: its reference is taken


class Busy(Exception):
    """429: nothing was executed, try again after some seconds."""

    def __init__(self, retry_after):
        super().__init__(f"retry after {retry_after} s")
        self.retry_after = retry_after


def seconds(retry_after):
    """Reads the header Retry-After: seconds or a date."""
    try:
        return max(0.0, float(retry_after))
    except (TypeError, ValueError):
        with contextlib.suppress(TypeError, ValueError):
            return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
        return 1.0


class Gateway:
    def __init__(self, base_url, key):
        self.url, self.key = urllib.parse.urlsplit(base_url), key

    def call(self, method, path, body=None, **headers):
        kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        conn = kind(self.url.netloc, timeout=TIMEOUT)
        headers = {"Authorization": "Bearer " + self.key, **headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            conn.request(method, self.url.path.rstrip("/") + path, body, headers)
            resp = conn.getresponse()
            status, retry_after, raw = resp.status, resp.getheader("Retry-After"), resp.read()
        except (OSError, http.client.HTTPException) as e:
            raise Unknown(f"{method} {path}: {e!r}") from e
        finally:
            conn.close()
        if status == 429:
            raise Busy(seconds(retry_after))
        try:
            answer = json.loads(raw)
            if not isinstance(answer, dict):
                raise ValueError("not an object")
        except ValueError as e:  # half a body, or the page of a proxy
            raise Unknown(f"{method} {path}: {status} without JSON") from e
        if status == 409 and "IDEMPOTENCY" in f"{answer.get('code')} {answer.get('error')}":
            raise Unknown("the first request with the key has not ended")
        if status in (400, 401, 403, 404, 409, 410, 422) and answer.get("status") == status:  # else a proxy's
            raise Rejected(status, answer)
        if not 200 <= status <= 299 or answer.get("success") is False:
            raise Unknown(f"{method} {path}: {status}")
        return answer

    def transaction(self, tx_id):
        tx = self.call("GET", "/v2/transactions/" + urllib.parse.quote(tx_id, safe="")).get("data")
        if not isinstance(tx, dict) or tx.get("id") != tx_id:
            raise Unknown("a transaction without its id")
        return tx

    def find(self, ref):
        """Reads the list from its newest page: the interface has no filter for references."""
        cursor = None
        for _ in range(10):
            page = self.call("GET", "/v2/transactions?limit=100" + ("&cursor=" + urllib.parse.quote(cursor) if cursor else ""))
            if isinstance(page["data"], dict):  # one of two shapes
                page = page["data"]
            for item in page["data"]:
                if ref in (item.get("external_ref"), (item.get("payment") or {}).get("external_ref")):
                    return self.transaction(item["id"])
            cursor = page.get("next_cursor")
            if not cursor:
                return None
        raise Unknown("not on the newest pages")


def charged(tx):
    """What the buyer was asked to pay, or has paid; `amount` may be what the gateway settles."""
    return int(tx.get("paid_amount") or tx.get("base_price") or tx["amount"])


def state(tx):
    """Returns status, paid, refunded and charged_back of a transaction."""
    status, refunded = tx["status"], int(tx.get("refunded_amount") or 0)
    if status in ("refused", "expired", "canceled"):
        return "failed", 0, 0, 0
    if status == "chargedback" and MISTAKE == "chargeback_ignored":
        status = "paid"
    # A disputed payment is paid until the dispute is lost.
    if status not in ("paid", "captured", "partially_refunded", "refunded", "chargedback", "med", "in_protest", "pre_chargedback"):
        return "pending", 0, 0, 0
    paid = charged(tx)
    if status == "chargedback":
        return "charged_back", paid, refunded, paid - refunded
    if refunded and MISTAKE == "any_refund_is_full":
        refunded = paid
    return ("refunded" if refunded >= paid else "partially_refunded" if refunded else "paid"), paid, refunded, 0


def is_ours(order, tx):
    """Someone else may have used the reference: then it is another amount, or has not our metadata."""
    if MISTAKE == "no_amount_check":
        return True
    return (tx.get("external_ref") == order["ref"] and charged(tx) == order["amount"]
            and tx.get("currency") == order["currency"] and tx.get("method") == order["method"]
            and tx.get("metadata") in ("order=" + order["id"], {"order": order["id"]}))


# The shop.

class Shop:
    def __init__(self, store, gateway, secret):
        self.store, self.gateway, self.secret = store, gateway, secret
        self.locks, self.locking, self.ticking = defaultdict(threading.Lock), threading.Lock(), threading.Lock()
        self.seen = set()  # only for memory_dedup

    def lock(self, order_id):
        """One charge or refund of an order at a time. Webhooks don't take it: they arrive while a charge is made."""
        with self.locking:
            return self.locks[order_id]

    def book(self, order_id, tx, ship=None, event_id=None, late=False):
        """Books what the gateway has. Reads and events may be older than what is booked, so nothing is set back."""
        with self.store.commit() as db:
            if event_id:
                db.execute("INSERT OR IGNORE INTO events VALUES (?)", (event_id,))
            order = self.store.order(order_id)
            if order["tx"] not in (None, tx["id"]):
                return
            if not is_ours(order, tx):
                db.execute("UPDATE orders SET status = 'review' WHERE id = ? AND tx IS NULL", (order_id,))
                return
            status, paid, refunded, back = state(tx)
            if MISTAKE == "no_amount_check" and paid:
                paid = order["amount"]
            if (RANK[status], refunded) < (RANK[order["status"]], order["refunded"]) and not late:
                status, paid, refunded, back = order["status"], order["paid"], order["refunded"], order["charged_back"]
            shipped = order["shipped"]
            if status in ("paid", "partially_refunded") and (shipped == 0 if ship is None else ship):
                shipped += 1  # here the parcel leaves
            db.execute("UPDATE orders SET tx = ?, created = ?, status = ?, paid = ?, refunded = ?, charged_back = ?, shipped = ?"
                       " WHERE id = ?", (tx["id"], tx.get("created_at") or order["created"], status, paid, refunded, back, shipped, order_id))
            db.execute("UPDATE refunds SET state = 'done' WHERE order_id = ? AND state = 'sent' AND before + amount = ?", (order_id, refunded))

    # Placing an order.

    def place(self, req):
        order_id, amount = req.get("id"), req.get("amount")
        if not (isinstance(order_id, str) and order_id and isinstance(amount, int) and amount > 0
                and req.get("method") in ("pix", "voucher", "credit_card")):
            return 422, {"error": "id, amount in cents and method (pix, voucher, credit_card) are required"}
        if MISTAKE == "double_click":
            return self.place_locked(req)
        with self.lock(order_id):
            return self.place_locked(req)

    def place_locked(self, req):
        order = self.store.order(req["id"])
        if order and (order["amount"], order["method"]) != (req["amount"], req["method"]):
            return 409, {"error": "another order has this id"}
        if order is None or MISTAKE == "double_click":
            order = self.new_order(req)
            if MISTAKE == "acks_unknown_order":
                tx = self.gateway.call("POST", "/v2/transactions", order["body"])["data"]
                self.insert(order)
                self.book(order["id"], tx)
            else:
                self.insert(order)
        order = self.store.order(req["id"])
        if order["status"] == "unknown" and not order["tx"]:
            self.charge(order)
        return self.placed(self.store.order(req["id"]))

    def placed(self, order):
        if order["status"] == "failed":
            return 402, self.report(order)
        return (202 if order["status"] in ("unknown", "review") else 201), self.report(order)

    def new_order(self, req):
        amount, ref = req["amount"], "shop-" + req["id"]
        if MISTAKE == "double_click":
            ref += "-" + uuid.uuid4().hex
        if MISTAKE == "float_cents":
            price = amount / 100
            amount = int(price * 100)
        body = {"external_ref": ref, "amount": amount, "currency": req.get("currency", "BRL"), "method": req["method"],
                "buyer": req.get("buyer"), "products": [{"name": "Order " + req["id"], "price": amount}],
                "metadata": urllib.parse.urlencode({"order": req["id"]})}
        if req.get("card_token"):
            body["token"] = req["card_token"]
        return {"id": req["id"], "amount": req["amount"], "currency": body["currency"], "method": req["method"],
                "ref": ref, "body": json.dumps(body).encode()}

    def insert(self, order):
        with self.store.commit() as db:
            db.execute("INSERT OR REPLACE INTO orders (id, amount, currency, method, ref, body) VALUES"
                       " (:id, :amount, :currency, :method, :ref, :body)", order)

    def charge(self, order, attempts=ATTEMPTS, settled=False):
        """Creates the charge, or finds it. Every attempt has the same bytes, so there is never a second charge."""
        doubt = order["sent"]  # an earlier request may have been executed
        with self.store.commit() as db:
            db.execute("UPDATE orders SET sent = 1 WHERE id = ?", (order["id"],))
        for attempt in range(attempts):
            if attempt:
                time.sleep(0.2 * attempt)
            if MISTAKE == "new_ref":
                order = self.new_reference(order)
            try:
                tx = self.gateway.call("POST", "/v2/transactions", order["body"]).get("data")
                if not isinstance(tx, dict) or not tx.get("id"):
                    raise Unknown("a charge without its id")
                return self.book(order["id"], tx)
            except Busy as e:
                if e.retry_after > 5:
                    return None
                time.sleep(e.retry_after)
            except Unknown:
                doubt = True
                if MISTAKE == "timeout_is_failure":
                    return self.fail(order)
            except Rejected as e:
                with contextlib.suppress(Unknown, Busy, Rejected):
                    return self.rejected(order, e, doubt, settled)
                return None
        return None

    def rejected(self, order, e, doubt, settled):
        tx = None
        if e.duplicate and str(e.body.get("instance")).startswith("/v2/transactions/"):
            tx = self.gateway.transaction(e.body["instance"].rsplit("/", 1)[1])
        elif e.duplicate or doubt:  # the rejection may be the effect of our own first request
            tx = self.gateway.find(order["ref"])
        if tx:
            self.book(order["id"], tx)
        elif not e.duplicate and (settled or not doubt):
            self.fail(order)

    def fail(self, order):
        with self.store.commit() as db:
            db.execute("UPDATE orders SET status = 'failed' WHERE id = ? AND (tx IS NULL OR ?)",
                       (order["id"], MISTAKE == "timeout_is_failure"))

    def new_reference(self, order):
        ref = "shop-" + order["id"] + "-" + uuid.uuid4().hex
        body = json.dumps({**json.loads(order["body"]), "external_ref": ref}).encode()
        with self.store.commit() as db:
            db.execute("UPDATE orders SET ref = ?, body = ? WHERE id = ?", (ref, body, order["id"]))
        return self.store.order(order["id"])

    def report(self, order):
        doubtful = self.store.one("SELECT 1 FROM refunds WHERE order_id = ? AND state = 'review'", order["id"])
        return {"id": order["id"], "status": "review" if doubtful else order["status"], "paid": order["paid"],
                "refunded": order["refunded"], "charged_back": order["charged_back"], "shipped": order["shipped"],
                "charges": [order["tx"]] if order["tx"] else []}

    # Refunds.

    def refund(self, order_id, req):
        refund_id, amount = req.get("id"), req.get("amount")
        if not (isinstance(refund_id, str) and refund_id and isinstance(amount, int) and amount > 0):
            return 422, {"error": "id and amount in cents are required"}
        with self.lock(order_id):
            order = self.store.order(order_id)
            if order is None:
                return 404, {"error": "no such order"}
            known = self.store.one("SELECT * FROM refunds WHERE order_id = ? AND id = ?", order_id, refund_id)
            if known and known["amount"] != amount:
                return 409, {"error": "another refund has this id"}
            if known:
                with contextlib.suppress(Unknown, Busy, Rejected):
                    self.book(order_id, self.gateway.transaction(order["tx"]))
                return self.refunded(order_id, refund_id)
            if self.store.one("SELECT 1 FROM refunds WHERE order_id = ? AND state IN ('sent', 'review')", order_id):
                return 409, {"error": "the outcome of another refund is not known yet"}
            if not order["tx"]:
                return 409, {"error": "the order is not paid"}
            self.book(order_id, self.gateway.transaction(order["tx"]))
            order = self.store.order(order_id)
            if order["status"] not in ("paid", "partially_refunded") or amount > order["paid"] - order["refunded"]:
                return 409, {"error": "there is not so much to refund"}
            with self.store.commit() as db:
                db.execute("INSERT INTO refunds VALUES (?, ?, ?, 'sent', ?, NULL)", (order_id, refund_id, amount, order["refunded"]))
            self.send_refund(order, refund_id, amount)
            return self.refunded(order_id, refund_id)

    def refunded(self, order_id, refund_id):
        row = self.store.one("SELECT state FROM refunds WHERE order_id = ? AND id = ?", order_id, refund_id)
        return {"done": 200, "rejected": 409}.get(row["state"], 202), {"id": refund_id, "state": row["state"]}

    def send_refund(self, order, refund_id, amount):
        """Sends a refund once. Not every gateway honors the key, so an unknown outcome is left to settle_refund."""
        path = "/v2/transactions/" + urllib.parse.quote(order["tx"], safe="") + "/refund"
        for attempt in range(ATTEMPTS):
            headers = {} if MISTAKE == "refund_repeated" else {"Idempotency-Key": f"refund-{order['ref']}-{refund_id}"}
            try:
                data = self.gateway.call("PUT", path, json.dumps({"amount": amount}).encode(), **headers).get("data")
                if not isinstance(data, dict) or data.get("amount_refunded") != amount:
                    return
                with self.store.commit() as db:
                    db.execute("UPDATE refunds SET state = 'done' WHERE order_id = ? AND id = ?", (order["id"], refund_id))
                with contextlib.suppress(Unknown, Busy, Rejected):
                    self.book(order["id"], self.gateway.transaction(order["tx"]))
                return
            except Busy as e:
                if e.retry_after > 5:
                    return
                time.sleep(e.retry_after)
            except Unknown:
                if MISTAKE != "refund_repeated":
                    return
            except Rejected:
                with self.store.commit() as db:
                    db.execute("UPDATE refunds SET state = 'rejected' WHERE order_id = ? AND id = ? AND state = 'sent'",
                               (order["id"], refund_id))
                return

    def settle_refund(self, refund, now):
        """Finds out whether a refund was made: by what the transaction had before and has now."""
        order = self.store.order(refund["order_id"])
        self.book(order["id"], self.gateway.transaction(order["tx"]))
        order = self.store.order(order["id"])
        key = (order["id"], refund["id"])
        refund = self.store.one("SELECT * FROM refunds WHERE order_id = ? AND id = ?", *key)
        if refund["state"] != "sent":
            return
        with self.store.commit() as db:
            if refund["since"] is None:
                db.execute("UPDATE refunds SET since = ? WHERE order_id = ? AND id = ?", (now.isoformat(), *key))
                return
            if now - datetime.fromisoformat(refund["since"]) < SETTLE:
                return
            if order["refunded"] != refund["before"] or order["status"] == "charged_back":
                # Someone else refunded, too: a person must look. Or the money is gone.
                state = "review" if order["refunded"] != refund["before"] else "rejected"
                db.execute("UPDATE refunds SET state = ? WHERE order_id = ? AND id = ?", (state, *key))
                return
            db.execute("UPDATE refunds SET since = NULL WHERE order_id = ? AND id = ?", key)
        self.send_refund(order, refund["id"], refund["amount"])

    # Webhooks.

    def verify(self, headers, body):
        if MISTAKE == "unsigned":
            return True
        stamp = (headers.get("X-Gateway-Timestamp") or "").strip()
        if not (stamp.isascii() and stamp.isdigit()) or abs(time.time() - int(stamp)) > 300:
            return False
        want = "sha256=" + hmac.new(self.secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        given = ",".join(headers.get_all("X-Gateway-Signature") or []).replace(",", " ").split()
        return any(hmac.compare_digest(want.encode(), s.encode()) for s in given)  # two during a rotation

    def webhook(self, headers, body):
        if not self.verify(headers, body):
            return 401, {"error": "invalid signature"}
        try:
            event = json.loads(body)
            event_id, data = str(event["id"]), event.get("data") or {}
            kind, tx_id, ref = data.get("event_type"), data.get("id"), data.get("correlation_id")
        except (ValueError, TypeError, KeyError, AttributeError):
            return 400, {"error": "not an event"}
        received = 200, {"received": True}
        if event.get("event") != "transaction" or not isinstance(tx_id, str):
            return received
        if self.store.one("SELECT 1 FROM events WHERE id = ?", event_id) and MISTAKE not in ("no_dedup", "memory_dedup"):
            return received
        order = self.store.one("SELECT * FROM orders WHERE tx = ? OR ref = ?", tx_id, ref)
        if order is None:  # an order is stored before it is charged, so this charge is not ours
            return received
        if MISTAKE == "late_overwrites" and kind in (*OPENING, "transaction.paid") or MISTAKE == "unsigned" and kind == "transaction.paid":
            tx = {**data, "external_ref": order["ref"], "metadata": "order=" + order["id"]}
            self.book(order["id"], tx, event_id=event_id, late=MISTAKE == "late_overwrites")
            return received
        if kind in OPENING and order["tx"] or MISTAKE == "chargeback_ignored" and kind == "transaction.chargedback":
            return received  # nothing new
        try:
            tx = self.gateway.transaction(tx_id)
        except (Unknown, Busy, Rejected) as e:
            return received if MISTAKE == "swallow_errors" else (503, {"error": str(e)})
        if RANK[state(tx)[0]] < EVENT_RANK.get(kind, 0):
            return 503, {"error": "the gateway's read is older than the event"}
        self.book(order["id"], tx, self.ship_wrongly(order, kind, event_id), event_id)
        return received

    def ship_wrongly(self, order, kind, event_id):
        """None is right: book() decides in its own transaction, by what is booked."""
        if MISTAKE == "no_dedup":
            return kind == "transaction.paid"
        if MISTAKE == "memory_dedup" and kind == "transaction.paid":
            with self.locking:
                fresh = event_id not in self.seen
                self.seen.add(event_id)
            return fresh
        if MISTAKE == "check_then_act":
            return order["shipped"] == 0  # as it was before the transaction was read
        return None

    # Jobs and the success page.

    def tick(self, now):
        """Finds out what no webhook said. A shop runs this every few minutes."""
        with self.ticking:
            for order in self.store.all("SELECT * FROM orders ORDER BY rowid"):
                lock = self.lock(order["id"])
                if lock.acquire(blocking=False):  # else it is being charged or refunded right now
                    try:
                        self.look_again(order, now)
                    except (Unknown, Busy, Rejected) as e:
                        print(f"order {order['id']}: {e}", file=sys.stderr)
                    finally:
                        lock.release()

    def look_again(self, order, now):
        if order["status"] == "unknown" and not order["tx"]:
            return self.charge(order, attempts=1, settled=True)
        for refund in self.store.all("SELECT * FROM refunds WHERE order_id = ? AND state = 'sent'", order["id"]):
            self.settle_refund(refund, now)
        if not order["tx"] or MISTAKE in NO_RECONCILIATION:
            return None
        age = now - datetime.fromisoformat(order["created"])
        if (order["status"] == "pending"
                or order["status"] == "failed" and order["method"] == "voucher" and age < timedelta(days=30)  # may be paid late
                or order["status"] in ("paid", "partially_refunded") and age < timedelta(days=1)):
            self.book(order["id"], self.gateway.transaction(order["tx"]))
        return None

    def back_from_payment(self, order_id):
        """The success page: what the buyer's browser says is not looked at."""
        order = self.store.order(order_id)
        if order is None:
            return 404, {"error": "no such order"}
        if order["tx"]:
            with contextlib.suppress(Unknown, Busy, Rejected):
                self.book(order_id, self.gateway.transaction(order["tx"]))
        return 200, self.report(self.store.order(order_id))


# HTTP.

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # the header and the body in one packet
    shop, hooks = None, False

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, out = self.route(body)
        except (Unknown, Busy) as e:
            status, out = 503, {"error": str(e)}
        except Rejected as e:
            status, out = 502, {"error": str(e)}
        except Exception as e:  # a webhook is redelivered, a click repeated
            traceback.print_exc()
            status, out = 500, {"error": repr(e)}
        out = json.dumps(out).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def route(self, body):
        parts = [urllib.parse.unquote(p) for p in urllib.parse.urlsplit(self.path).path.split("/")[1:]]
        if (self.command, parts) == ("POST", ["webhooks"]):
            return self.shop.webhook(self.headers, body)
        if not self.hooks:
            return 404, {"error": "not found"}
        if self.command == "GET" and len(parts) == 3 and parts[:2] == ["exam", "orders"]:
            order = self.shop.store.order(parts[2])
            return (200, self.shop.report(order)) if order else (404, {"error": "no such order"})
        try:
            req = json.loads(body)
            if not isinstance(req, dict):
                raise ValueError("not an object")
        except ValueError as e:
            return 400, {"error": f"the body must be a JSON object: {e}"}
        match self.command, parts:
            case "POST", ["exam", "orders"]:
                return self.shop.place(req)
            case "POST", ["exam", "orders", order_id, "refunds"]:
                return self.shop.refund(order_id, req)
            case "POST", ["exam", "orders", order_id, "return"]:
                return self.shop.back_from_payment(order_id)
            case "POST", ["exam", "tick"]:
                try:
                    now = datetime.fromisoformat(req.get("now"))
                except (TypeError, ValueError):
                    return 422, {"error": "now must be a timestamp"}
                self.shop.tick(now)
                return 200, {}
        return 404, {"error": "not found"}

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def jobs(shop):
    while True:
        time.sleep(300)
        shop.tick(datetime.now(timezone.utc))


def main():
    global MISTAKE
    args = sys.argv[1:]
    if args[:1] == ["--mistake"] and len(args) == 2:
        MISTAKE = args[1]
    elif args:
        exit_with("usage: shop.py [--mistake NAME]")
    if MISTAKE and MISTAKE not in MISTAKES:
        exit_with(f"unknown mistake {MISTAKE!r}; there are: {' '.join(MISTAKES)}")
    env = {}
    for name in ("PORT", "GATEWAY_BASE_URL", "GATEWAY_API_KEY", "GATEWAY_WEBHOOK_SECRET", "EXAM_DATA_DIR"):
        env[name] = os.environ.get(name) or exit_with(f"{name} is not set")
    if not env["PORT"].isdigit():
        exit_with(f"PORT is {env['PORT']!r}, which is not a number")
    Handler.hooks = os.environ.get("EXAM") == "1"
    gateway = Gateway(env["GATEWAY_BASE_URL"], env["GATEWAY_API_KEY"])
    try:
        store = Store(env["EXAM_DATA_DIR"])
        server = Server(("127.0.0.1", int(env["PORT"])), Handler)
    except (OSError, OverflowError, sqlite3.Error) as e:
        exit_with(f"EXAM_DATA_DIR or PORT: {e}")
    Handler.shop = Shop(store, gateway, env["GATEWAY_WEBHOOK_SECRET"])
    if not Handler.hooks:  # in an exam, the hook runs the jobs
        threading.Thread(target=jobs, args=(Handler.shop,), daemon=True).start()
    server.serve_forever()


def exit_with(message):
    print("shop.py: " + message, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
