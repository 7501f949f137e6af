// "Hello, world" after a fixed time of work, with Connection: close.
//
// server.mjs HOST PORT BACKLOG WORK_US
import http from 'node:http';

const [host, port, backlog, workUs] = process.argv.slice(2);

http
  .createServer((request, response) => {
    const until = performance.now() + workUs / 1000;
    while (performance.now() < until);
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 12, 'Connection': 'close' });
    response.end('Hello, world');
  })
  .listen({ host, port: Number(port), backlog: Number(backlog) });
