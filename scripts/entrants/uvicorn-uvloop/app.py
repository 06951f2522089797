# SPDX-License-Identifier: MIT
"""The least that an ASGI server can be asked to run: no framework between it and the answer."""

import os

BODY = os.environ["BODY"].encode()
HEAD = [(b"content-type", b"text/plain"), (b"content-length", str(len(BODY)).encode())]


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    await send({"type": "http.response.body", "body": BODY})
