"""Lets the framework parse the body, and passes it on as it was written again."""
import json
import os

from fastapi import FastAPI, Request, Response

import gateway_webhook
from shop import store

app = FastAPI()


@app.post("/webhooks/gateway")
def webhook(request: Request, event: dict):
    reply = gateway_webhook.receive(request.headers.get("X-Gateway-Timestamp"), request.headers.get("X-Gateway-Signature"),
                                    json.dumps(event).encode(), gateway_webhook.secrets_from(os.environ), store)
    return Response(reply.body, reply.status, reply.headers)
