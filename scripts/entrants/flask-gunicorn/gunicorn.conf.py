# SPDX-License-Identifier: MIT
"""How gunicorn serves the application. Its access log is off unless asked for."""

import os

host = os.environ["HOST"]
bind = f"[{host}]:{os.environ['PORT']}" if ":" in host else f"{host}:{os.environ['PORT']}"
workers = int(os.environ["WORKERS"])
# The default class, sync, closes the connection after each answer. This one keeps it.
worker_class = "gthread"
# Two to four per core is gunicorn's advice. More would only wait for Python's global lock.
threads = 4
# Otherwise a socket for gunicorn's own client is left in the user's home folder, the same for all.
control_socket_disable = True
