// SPDX-License-Identifier: MIT
//
// Node's own http module behind its cluster module: the primary process accepts the connections and
// hands them to the workers in turn, which is Node's default on Linux.

"use strict";

const cluster = require("node:cluster");
const http = require("node:http");

const { BODY, PORT, WORKERS } = process.env;
// Left alone, "localhost" would be the one address that the resolver names first, often ::1.
const HOST = process.env.HOST === "localhost" ? "127.0.0.1" : process.env.HOST;
// Node asks for a queue of 511 unless told otherwise: too short for a thousand clients at once.
const BACKLOG = 4096;

if (cluster.isPrimary) {
  // WORKERS, not os.cpus().length, which counts processors that this process may not use.
  for (let i = 0; i < Number(WORKERS); i++) {
    cluster.fork();
  }
  // With a worker lost, the figures would be those of a smaller server. The others end with us.
  cluster.on("exit", () => process.exit(1));
} else {
  // With the length in the head, Node neither chunks the body nor ends an HTTP/1.0 connection that
  // its client asked to keep.
  const head = { "Content-Type": "text/plain", "Content-Length": Buffer.byteLength(BODY) };
  http.createServer((request, response) => {
    response.writeHead(200, head);
    response.end(BODY);
  }).listen({ port: PORT, host: HOST, backlog: BACKLOG });
}
