"""The webhook in FastAPI: python3 -m uvicorn fastapi_app:app"""
import os

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool

import gateway_webhook
from shop import store

secrets = gateway_webhook.secrets_from(os.environ)
app = FastAPI()


# Declare no parameter for the body: FastAPI would parse it, but the signature covers the bytes
# as they arrived.
@app.post("/webhooks/gateway")
async def webhook(request: Request):
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > gateway_webhook.MAX_BODY:
            break  # receive responds with 413
    reply = await run_in_threadpool(  # the database would block all other requests
        gateway_webhook.receive, ", ".join(request.headers.getlist("X-Gateway-Timestamp")),
        ", ".join(request.headers.getlist("X-Gateway-Signature")), body, secrets, store)
    return Response(reply.body, reply.status, reply.headers)
