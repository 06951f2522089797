// SPDX-License-Identifier: MIT
//
// Fastify in one process. Its logger is off unless asked for; a string is sent as text/plain.

"use strict";

const fastify = require("fastify");

const { BODY, HOST, PORT } = process.env;
// Node asks for a queue of 511 unless told otherwise: too short for a thousand clients at once.
const BACKLOG = 4096;

const app = fastify();
app.get("/*", async () => BODY);
app.listen({ host: HOST, port: Number(PORT), backlog: BACKLOG });
