// SPDX-License-Identifier: MIT
//
// Starts a worker per core and ends with them: what Bun's guide to clusters advises, for one Bun
// process runs its JavaScript in one thread.

const workers = Array.from({ length: Number(process.env.WORKERS) }, () =>
  Bun.spawn([process.execPath, `${import.meta.dir}/server.js`],
            { stdio: ["ignore", "inherit", "inherit"] }));

function end(status) {
  for (const worker of workers) {
    worker.kill();
  }
  process.exit(status);
}

process.on("SIGTERM", () => end(0));
process.on("SIGINT", () => end(0));
// With a worker lost, the figures would be those of a smaller server.
await Promise.race(workers.map((worker) => worker.exited));
end(1);
