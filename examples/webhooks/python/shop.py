"""The shop's side: stores an event and its effect in one transaction of SQLite."""
import contextlib
import json
import os
import sqlite3


def store(event):
    """Stores the event, and marks its order as paid if it says so.

    An event whose id is stored changes nothing.
    """
    # A connection for each event: SQLite's are cheap, and not made for several threads.
    with contextlib.closing(sqlite3.connect(os.environ["DATABASE"], timeout=5, isolation_level=None)) as db:
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous = FULL")  # 200 must mean: on the disk
        db.execute("BEGIN IMMEDIATE")  # closing the connection rolls back
        new = db.execute("INSERT INTO gateway_events (id, kind, resource_id, data) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                         (event.id, event.kind, event.resource_id, json.dumps(event.data))).rowcount
        if new and event.kind == "transaction.paid":
            db.execute("UPDATE gateway_events SET problem = ? WHERE id = ?", (pay(db, event), event.id))
        db.execute("COMMIT")


def pay(db, event):
    """Marks the order as paid. Returns why it can't, for a person to look at."""
    data = event.data
    order = db.execute("SELECT * FROM orders WHERE ref = ?", (data.get("correlation_id") or data.get("external_ref"),)).fetchone()
    if order is None:  # orders are stored before they are charged, so this is another program's charge
        return "no order has this reference"
    # What was charged is in one of the three: a live gateway may put the settled amount into amount.
    charged = order["amount"] in (data.get("amount"), data.get("base_price"), data.get("paid_amount"))
    if not charged or data.get("currency") != order["currency"]:
        return "the amount or the currency is not that of the order"
    if order["state"] != "pending":
        return None if order["transaction_id"] == event.resource_id else "the order is not pending"
    db.execute("UPDATE orders SET state = 'paid', transaction_id = ? WHERE ref = ?", (event.resource_id, order["ref"]))
    return None
