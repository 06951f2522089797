# SPDX-License-Identifier: MIT
"""Sanic on its own server with a worker process per core. It takes uvloop where it is installed."""

import os

from sanic import Sanic
from sanic.response import text

BODY = os.environ["BODY"]

app = Sanic("hello")


@app.route("/", methods=["GET", "HEAD"], name="root")
@app.route("/<path:path>", methods=["GET", "HEAD"])
async def hello(request, path=""):
    return text(BODY)


if __name__ == "__main__":
    app.run(host=os.environ["HOST"], port=int(os.environ["PORT"]),
            workers=int(os.environ["WORKERS"]), access_log=False, motd=False)
