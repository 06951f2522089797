// SPDX-License-Identifier: MIT
//
// One worker: Bun's own server. reusePort lets the kernel share the connections out among workers.

const { BODY, HOST, PORT } = process.env;

Bun.serve({
  // Left alone, "localhost" would be the one address that the resolver names first, often ::1.
  hostname: HOST === "localhost" ? "127.0.0.1" : HOST,
  port: Number(PORT),
  reusePort: true,
  fetch: () => new Response(BODY),
});
