// SPDX-License-Identifier: MIT

// Node's HTTP server on a Unix socket, for nginx in front of it.

const fs = require('node:fs');
const http = require('node:http');

const [socket, body] = process.argv.slice(2);
fs.rmSync(socket, { force: true }); // What an earlier server has left.
http.createServer((request, response) => {
  response.setHeader('Content-Type', 'text/plain');
  response.end(body);
}).listen(socket);
