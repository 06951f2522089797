// SPDX-License-Identifier: MIT
//
// Node's own http module in one process, written as in the articles.

"use strict";

const http = require("node:http");

const { BODY, PORT } = process.env;
// Left alone, "localhost" would be the one address that the resolver names first, often ::1.
const HOST = process.env.HOST === "localhost" ? "127.0.0.1" : process.env.HOST;

http.createServer((request, response) => {
  // Not writeHead(): it settles the head before the length is known, so the body would be chunked.
  response.statusCode = 200;
  response.setHeader("Content-Type", "text/plain");
  response.end(BODY);
}).listen(PORT, HOST);
