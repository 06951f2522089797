# SPDX-License-Identifier: MIT
"""Results folders that nobody measured: plausible, the same each time, with every kind of trouble.

25 entrants: the slowest does 1/100 of the fastest, one fails, one isn't installed, one has a run
with an error, the fastest is limited by its client. SHAPES names the articles' tables.
"""

import json
import pathlib
import random

from hellobench import journal, model, plan

SHAPES = ("runs", "resources", "ladder", "rps", "ours", "rate", "startup")
FAILED, ABSENT, FAULTY, BOUND, SLOWEST = "iris", "swoole", "express", "hello-uring", "flask"
ENTRANTS = (  # id, title, language, requests/s
    ("hello-uring", "hello-uring", "C++", 92000),
    ("hello-epoll", "hello-uring (epoll)", "C++", 84000),
    ("nginx", "nginx return 200", "C", 71000), ("ntex", "ntex", "Rust", 70500),
    ("hyper", "hyper", "Rust", 70100), ("may", "may_minihttp", "Rust", 66000),
    ("fasthttp", "fasthttp", "Go", 58000), ("fiber", "Fiber", "Go", 55000),
    ("haproxy", "HAProxy return", "C", 54000), ("aspnet", "ASP.NET Core", "C#", 43000),
    ("go", "Go net/http", "Go", 39000), ("gin", "Gin", "Go", 38500), ("echo", "Echo", "Go", 38200),
    ("iris", "Iris", "Go", 37000), ("bun", "Bun", "JavaScript", 36000),
    ("swoole", "PHP Swoole", "PHP", 34000),
    ("node-cluster", "Node.js cluster", "JavaScript", 25000),
    ("node", "Node.js", "JavaScript", 17000),
    ("express-cluster", "Express cluster", "JavaScript", 15800),
    ("express", "Express", "JavaScript", 9800), ("sanic", "Sanic", "Python", 8600),
    ("php-fpm", "nginx + php-fpm", "PHP", 6700),
    ("nginx-node", "nginx in front of Node.js", "JavaScript", 6100),
    ("gunicorn", "Flask, gunicorn", "Python", 2100), ("flask", "Flask", "Python", 920))
PUBLISHED = {
    "runs": [{"entrant": "fiber", "label": "Fiber", "rps": [46989, 47128, 46717, 46209, 45760],
              "errors": "errors now and then"},
             {"entrant": "go", "label": "Plain Go", "rps": [35240, 35090, 35409, 34945, 34979],
              "errors": "stable"},
             {"entrant": "iris", "label": "Iris", "rps": [40952, 41680, 41793, 41703, 41805],
              "errors": "stable"},
             {"entrant": "flask", "label": "Flask", "rps": [342, 400], "errors": "too slow"}],
    "resources": [{"entrant": "go", "label": "Go", "rps": [35509], "max_cpu_pct": 50.67,
                   "memory_mb": 232},
                  {"entrant": "swoole", "label": "PHP Swoole", "rps": [34919],
                   "max_cpu_pct": 49.33, "memory_mb": 228.67},
                  {"entrant": "node", "label": "Node.js", "rps": [21626], "max_cpu_pct": 20,
                   "memory_mb": 266}],
    "ladder": [{"entrant": "node", "label": "Node.js",
                "ladder": {"n10-c1": [1173, 0.8], "n5000-c200": [2300, 86.4]}},
               {"entrant": "go", "label": "Go",
                "ladder": {"n10-c1": [797, 1.2], "n5000-c200": [5000, 49.6]}}],
    "rps": [{"entrant": "swoole", "label": "PHP 7 + Swoole", "rps": [28553]},
            {"entrant": "node", "label": "Node.js", "rps": [9986]},
            {"entrant": "php-fpm", "label": "nginx + PHP 7", "rps": [6752]}]}
STEPS = {
    "ladder": [("n10-c1", ["ab", "-n10", "-c1", "{url}"], 1, 0.02),
               ("n100-c10", ["ab", "-n100", "-c10", "{url}"], 10, 0.1),
               ("n1000-c20", ["ab", "-n1000", "-c20", "{url}"], 20, 0.2),
               ("n5000-c200", ["ab", "-n5000", "-c200", "{url}"], 200, 0.3)],
    "ours": [("c64", ["wrk", "-t1", "-c64", "-d10s", "{url}"], 64, 1),
             ("c256", ["wrk", "-t1", "-c256", "-d10s", "{url}"], 256, 0.95)],
    "rate": [("r1000", ["h2load", "--h1", "-c50", "--rps=20", "{url}"], 50, 1)],
    "startup": [("start", [], None, 1)]}
MAIN = [("main", ["hey", "-n", "200000", "-c", "300", "http://localhost:{port}"], 300, 1)]


def profile(shape, blocks):
    rows = PUBLISHED.get(shape)
    published = rows and {"source": "An article that was never written", "shape": shape,
                          "note": "A machine with 4 processors.", "rows": rows}
    steps = [{"id": name, "argv": argv, "concurrency": concurrency, "added": [],
              "keepalive": None, "offered_rps": 1000.0 if shape == "rate" else None,
              "limit_s": 120, "tool_timeout_s": None}
             for name, argv, concurrency, _ in STEPS.get(shape, MAIN)]
    return {"id": f"article-{shape}" if published else shape, "steps": steps,
            "title": "Frameworks under hey, with keep-alive", "about": "Made-up figures.",
            "kind": "article" if published else "ours", "entrants": [one[0] for one in ENTRANTS],
            "body": "Hello World!", "host": "localhost", "port": 8080, "keepalive": True,
            "topology": "pinned", "server_cores": None, "blocks": blocks, "restart": True,
            "warm_up": [], "min_seconds": 2.0, "pooled": shape == "ladder", "published": published}


def entry(entrant_id, title, language):
    absent = entrant_id == ABSENT
    return {"id": entrant_id, "title": title, "language": language, "kind": "framework",
            "variant": "tuned", "workers": "one process, a thread per core",
            "single_threaded": entrant_id in ("node", "express", "flask"), "access_log": False,
            "installed": not absent, "version": None if absent else "1.2.3",
            "reason": "php's extension swoole is not there" if absent else None,
            "cure": "scripts/bench install swoole" if absent else None}


def cell(generator, shape, step, block, order, entrant_id, rate):
    name, argv, concurrency, share = step
    rate *= share * generator.gauss(1, 0.012)
    made = model.Cell(entrant_id, profile(shape, 1)["id"], name, block, order,
                      started="2026-12-01T10:00:00+00:00", argv=[
                          word.replace("{url}", "http://127.0.0.1:8080/").replace("{port}", "8080")
                          for word in argv],
                      tool=(argv or [None])[0], tool_version="0.1" if argv else None,
                      entrant_version="1.2.3", concurrency=concurrency, valid=True,
                      server_cpus=[0], client_cpus=[1], start_ms=abs(generator.gauss(40, 3)),
                      raw=[f"raw/{block:02}-{entrant_id}-{name}.{end}" for end in ("err", "out")])
    if argv:
        made.offered_rps = 1000.0 if shape == "rate" else None
        load(made, generator, 1000.0 if shape == "rate" else rate, rate)
    return made


def load(made, generator, rate, capacity):
    """What a run under load says, from its rate and from what the server is capable of."""
    server, client = 1e6 / capacity, 7 + generator.gauss(0, 0.1)
    made.rps, made.tool_rps = round(rate, 2), round(rate * 1.0003, 2)
    made.duration_s = made.wall_s = 10.0
    made.requests.asked = made.requests.done = made.requests.ok = int(rate * 10)
    made.statuses = {"200": int(rate * 10)}
    made.bytes_per_response = 128.0
    made.verdict = "SERVER_BOUND"
    mean = 1e6 * made.concurrency / capacity
    made.latency = model.Latency(
        resolution=1, min=mean * 0.3, mean=mean, p50=mean * 0.9, p75=mean * 1.1, p90=mean * 1.5,
        p95=mean * 2, p99=mean * 3.5, p99_9=mean * 8, max=mean * 12)
    made.cpu = model.Cpu("cgroup2", server, client, server + client + 1, rate * server / 1e6,
                         rate * client / 1e6, rate * (server + client + 1) / 1e6, 0.4, 0.97, 96)
    size = generator.randint(4, 60) << 20
    made.memory = model.Memory(size, size * 2, size // 2, size, 1, 2, 90, 240 << 20)
    made.network = model.Network(0.0, made.concurrency, 0, 0, 0, 0, 0, 12, 0.1)
    made.noise = model.Noise(0.1, 3.0, 0.02, 0.003, 0.1)


def spoil(made):
    """What happens to the entrants that stand for trouble."""
    if made.entrant == FAILED:
        made.problems = [model.Problem("NOT_READY", "no good answer in 20 s")]
    elif made.entrant == FAULTY and made.block == 2 and made.argv:
        made.problems = [model.Problem("ERRORS", "41 connections were reset")]
        made.requests.errors["read"] = 41
    if made.problems:
        made.valid, made.rps, made.verdict = False, None, None
    elif made.entrant == BOUND and made.argv and made.offered_rps is None:
        made.verdict = "CLIENT_BOUND"
    return made


def write(folder, shape="runs", blocks=5, rename=None, twin=None):
    """Fills `folder`, and returns it.

    `rename`: {entrant: title} in place of its own. `twin`: the baseline is measured twice, and the
    second time its rate is this much of the first.
    """
    folder = pathlib.Path(folder)
    rename = rename or {}
    entrants = [entry(name, rename.get(name, title), language)
                for name, title, language, _ in ENTRANTS]
    steps = STEPS.get(shape, MAIN)
    generator = random.Random(f"synthetic-{shape}")
    measured = [(name, rate) for name, _, _, rate in ENTRANTS if name != ABSENT]
    if twin:
        entrants.append(entry("twin", "hello-uring (again)", "C++") | {"twin_of": "hello-uring"})
        measured.append(("twin", ENTRANTS[0][3] * twin))
    cells = [spoil(cell(generator, shape, step, block, order, name, rate))
             for block in range(blocks) for order, (name, rate) in enumerate(measured)
             for step in steps]
    planned = [plan.PlannedCell(one.block, one.order, one.entrant, one.step, True) for one in cells]
    plan.save(plan.Plan(
        created="2026-12-01T09:59:00+00:00", git={"commit": "0123456789abcdef" * 2, "dirty": False},
        binary_sha256="ab" * 32, profile=profile(shape, blocks), quick=False, seed=42,
        blocks=blocks, topology="pinned", server_cpus=[0], client_cpus=[1],
        baseline="hello-uring", entrants=entrants, cells=planned), folder)
    (folder / "env.json").write_text(json.dumps(environment()), "utf-8")
    (folder / "verify.json").write_text(json.dumps({name: verification() for name, *_ in ENTRANTS
                                                    if name not in (ABSENT, FAILED)}), "utf-8")
    lines = [json.dumps({"type": "cell", "cell": model.to_json(one)}) + "\n" for one in cells]
    (folder / journal.FILE).write_text("".join(lines), "utf-8")
    (folder / "raw").mkdir(exist_ok=True)
    for one in cells:
        (folder / one.raw[1]).write_text(f"Requests/sec: {one.tool_rps}\n", "utf-8")
    return folder


def environment():
    return {"kernel": "6.18.44", "architecture": "x86_64", "distribution": "Debian 12",
            "cpu": "Some Processor 3.0 GHz", "ncpu": 2, "governor": None, "memory_kb": 8123456,
            "before": {"load_1m": 0.1, "time_wait": 3}, "sysctl": {"net.core.somaxconn": "4096"},
            "limits": {"nofile_soft": 1024}, "versions": {"hey": "0.1.4", "wrk": "4.1.0"}}


def verification():
    return {"ok": True, "problems": [], "traits": {"framing": "content-length",
                                                   "keepalive_11": True, "honours_close": True,
                                                   "http10_keepalive": False, "ipv6": True,
                                                   "content_type": "text/plain", "server": "t"},
            "response_bytes_keepalive": 128, "response_bytes_close": 147, "head": "HTTP/1.1 200 OK"}


def edit(folder, change):
    """Passes the folder's plan, as JSON, through `change`."""
    path = pathlib.Path(folder) / plan.FILE
    data = json.loads(path.read_text("utf-8"))
    change(data)
    path.write_text(json.dumps(data), "utf-8")
