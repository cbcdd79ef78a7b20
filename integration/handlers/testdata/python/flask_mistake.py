"""Parses the body and passes it on as it was written again."""
import json
import os

from flask import Flask, Response, request

import gateway_webhook
from shop import store

app = Flask(__name__)


@app.post("/webhooks/gateway")
def webhook():
    reply = gateway_webhook.receive(request.headers.get("X-Gateway-Timestamp"), request.headers.get("X-Gateway-Signature"),
                                    json.dumps(request.get_json()).encode(), gateway_webhook.secrets_from(os.environ), store)
    return Response(reply.body, reply.status, reply.headers)
