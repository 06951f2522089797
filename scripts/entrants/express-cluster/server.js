// SPDX-License-Identifier: MIT
//
// Express behind Node's cluster module, written as in the article: a worker per core, and Express's
// defaults (ETag, X-Powered-By, text/html) left on.

"use strict";

const cluster = require("node:cluster");
const express = require("express");

const { BODY, PORT, WORKERS } = process.env;
// Left alone, "localhost" would be the one address that the resolver names first, often ::1.
const HOST = process.env.HOST === "localhost" ? "127.0.0.1" : process.env.HOST;

if (cluster.isPrimary) {
  // WORKERS, not os.cpus().length, which counts processors that this process may not use.
  for (let i = 0; i < Number(WORKERS); i++) {
    cluster.fork();
  }
  // With a worker lost, the figures would be those of a smaller server. The others end with us.
  cluster.on("exit", () => process.exit(1));
} else {
  const app = express();
  app.get("/{*path}", (request, response) => response.send(BODY));
  app.listen(PORT, HOST);
}
