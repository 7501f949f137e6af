// A WebSocket echo by the ws library.
//
// server.mjs HOST PORT BACKLOG WORKERS
import cluster from 'node:cluster';
import { WebSocketServer } from 'ws';

const [host, port, backlog, workers] = process.argv.slice(2);

function echo(socket) {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  // ws closes the connection by itself after a frame that it refuses or a reset.
  socket.on('error', () => {});
}

if (workers > 1 && cluster.isPrimary) {
  for (let i = 0; i < workers; i++) cluster.fork();
} else {
  new WebSocketServer({ host, port: Number(port), backlog: Number(backlog) }).on('connection', echo);
}
