// SPDX-License-Identifier: MIT
//
// Express in one process, written as in the article: its defaults (ETag, X-Powered-By, text/html)
// are left on.

"use strict";

const express = require("express");

const { BODY, PORT } = process.env;
// Left alone, "localhost" would be the one address that the resolver names first, often ::1.
const HOST = process.env.HOST === "localhost" ? "127.0.0.1" : process.env.HOST;

const app = express();
app.get("/{*path}", (request, response) => response.send(BODY));
app.listen(PORT, HOST);
