#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server file includes only modules of its own or a lower layer; every module is in the table."""

import re

import checkout

LAYERS = {
    0: ["balancer", "cpu", "crew", "deadline_queue", "error", "field", "http_date", "log", "stats",
        "unique_fd", "user_data"],
    1: ["answer", "buffer_ring", "config", "engine", "epoll_engine", "http_session", "listener",
        "request_parser", "response", "ring", "uring_engine"],
    2: ["acceptor", "connection", "connections", "exchange", "worker"],
    3: ["health_check", "main", "notify", "options", "server"],
}
LAYER_OF = {module: layer for layer, modules in LAYERS.items() for module in modules}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def main():
    findings, includes = [], 0
    paths = checkout.files("server")
    for path in paths:
        if path.suffix not in checkout.CPP or len(path.parts) != 2:
            findings.append(f"{path}: server/ holds only .h and .cpp files, and no folder")
            continue
        if path.stem not in LAYER_OF:
            findings.append(f"{path}: in no layer; add it to LAYERS in tests/lint/lint-layers.py")
            continue
        for number, line in enumerate(checkout.text(path).splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                includes += 1
                findings += problems(f"{path}:{number}", path.stem, match[1])
    absent = sorted(set(LAYER_OF) - {path.stem for path in paths})
    note = f"; in the table, but not there: {', '.join(absent)}" if absent else ""
    checkout.report(findings, f"{includes} includes of {len(paths)} files{note}", includes)


def problems(where, module, included):
    name = included.removeprefix("server/").removesuffix(".h")
    if name not in LAYER_OF:
        return [f'{where}: "{included}" is no module of server/; system headers go in <>']
    if LAYER_OF[name] > LAYER_OF[module]:
        return [f"{where}: {module} (layer {LAYER_OF[module]}) includes {name} "
                f"(layer {LAYER_OF[name]})"]
    return []


if __name__ == "__main__":
    main()
