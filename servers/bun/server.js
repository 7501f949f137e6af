// A WebSocket echo by Bun's own server.
//
// server.js HOST PORT WORKERS
const [hostname, port, workers] = process.argv.slice(2);

function serve() {
  Bun.serve({
    hostname,
    port: Number(port),
    reusePort: workers > 1,
    fetch(request, server) {
      if (server.upgrade(request)) return;
      return new Response('WebSocket only\n', { status: 426 });
    },
    websocket: {
      idleTimeout: 0,
      message(socket, data) {
        socket.send(data);
      },
    },
  });
}

if (workers > 1 && !process.env.WORKER) {
  const children = Array.from({ length: Number(workers) }, () =>
    Bun.spawn([process.execPath, ...process.argv.slice(1)], {
      env: { ...process.env, WORKER: '1' },
      stdio: ['ignore', 'inherit', 'inherit'],
    }),
  );
  process.on('SIGTERM', () => {
    for (const child of children) child.kill();
    process.exit();
  });
} else {
  serve();
}
