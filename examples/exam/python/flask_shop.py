#!/usr/bin/env python3
"""The shop of shop.py behind Flask, with the hooks of the exam.

  mockgateway exam -- python3 flask_shop.py
"""
import os
from datetime import datetime

from flask import Flask, request

from shop import Busy, Gateway, Rejected, Shop, Store, Unknown


def mount_exam(app, shop):
    @app.post("/exam/orders")
    def exam_place():
        status, _ = shop.place(request.get_json())  # what the checkout page calls
        return {}, status

    @app.get("/exam/orders/<order_id>")
    def exam_report(order_id):
        order = shop.store.order(order_id)
        if order is None:
            return {}, 404
        books = shop.report(order)
        return {"id": order_id, "status": books["status"], "paid": books["paid"], "refunded": books["refunded"],
                "charged_back": books["charged_back"], "shipped": books["shipped"]}

    @app.post("/exam/orders/<order_id>/refunds")
    def exam_refund(order_id):
        status, _ = shop.refund(order_id, request.get_json())  # what the operator's page calls
        return {}, status

    @app.post("/exam/tick")
    def exam_tick():
        shop.tick(datetime.fromisoformat(request.get_json()["now"]))  # what cron calls
        return {}


def create_app():
    app = Flask(__name__)
    gateway = Gateway(os.environ["GATEWAY_BASE_URL"], os.environ["GATEWAY_API_KEY"])
    shop = Shop(Store(os.environ["EXAM_DATA_DIR"]), gateway, os.environ["GATEWAY_WEBHOOK_SECRET"])

    @app.post("/webhooks")
    def webhook():
        status, body = shop.webhook(request.headers, request.get_data())
        return body, status

    @app.errorhandler(Unknown)
    @app.errorhandler(Busy)
    @app.errorhandler(Rejected)
    def failed(error):
        return {"error": str(error)}, 503  # a webhook is redelivered, a click repeated

    if os.environ.get("EXAM") == "1":
        mount_exam(app, shop)
    return app


if __name__ == "__main__":
    create_app().run(port=int(os.environ["PORT"]), threaded=True)
