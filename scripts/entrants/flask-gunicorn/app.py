# SPDX-License-Identifier: MIT
"""Flask as it is run in production: under gunicorn, see gunicorn.conf.py."""

import os

from flask import Flask, Response

BODY = os.environ["BODY"]

app = Flask(__name__)


@app.route("/", defaults={"path": ""})
@app.route("/<path:path>")
def hello(path):
    return Response(BODY, mimetype="text/plain")
