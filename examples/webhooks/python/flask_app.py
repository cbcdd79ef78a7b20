"""The webhook in Flask: python3 -m flask --app flask_app run"""
import os

from flask import Flask, Response, request

import gateway_webhook
from shop import store

secrets = gateway_webhook.secrets_from(os.environ)
app = Flask(__name__)


@app.post("/webhooks/gateway")
def webhook():
    if (request.content_length or 0) > gateway_webhook.MAX_BODY:
        reply = gateway_webhook.too_large()
    else:
        reply = gateway_webhook.receive(
            request.headers.get("X-Gateway-Timestamp"), request.headers.get("X-Gateway-Signature"),
            request.get_data(),  # not request.get_json(): the signature covers the bytes as they arrived
            secrets, store)
    return Response(reply.body, reply.status, reply.headers)
