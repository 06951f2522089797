# SPDX-License-Identifier: MIT
"""Flask on its development server, as the article ran it: a thread per connection, a log line per
request on stderr, and Flask's default Content-Type of text/html.
"""

import os

from flask import Flask

BODY = os.environ["BODY"]

app = Flask(__name__)


@app.route("/", defaults={"path": ""})
@app.route("/<path:path>")
def hello(path):
    return BODY


if __name__ == "__main__":
    app.run(host=os.environ["HOST"], port=int(os.environ["PORT"]))
