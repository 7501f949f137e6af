// The post's dynamic answer, and "Hello, world" in the experiments that ask for it.
//
// server.mjs EXPERIMENT SETUP HOST PORT BACKLOG WORKERS
import cluster from 'node:cluster';
import http from 'node:http';
import querystring from 'node:querystring';
import url from 'node:url';

const [experiment, setup, host, port, backlog, workers] = process.argv.slice(2);

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
const escape = (text) => text.replace(/[&<>]/g, (character) => ENTITIES[character]);

// How each setup finds the value of the query's "value".
const finders = {
  // As in the post.
  'parsing': (target) => url.parse(target, true).query.value,
  // What Node recommends since url.parse is deprecated.
  'whatwg': (target) => new URLSearchParams(target.split('?', 2)[1]).get('value'),
  // As a commenter asked: only right for a value that is the first parameter.
  'no-parsing': (target) =>
    target.startsWith('/?value=') && querystring.unescape(target.slice(8).split('&', 1)[0]),
};

function dynamic(find) {
  return (request, response) => {
    const value = find(request.url);
    const body = value
      ? `<http_test><value>${escape(value)}</value></http_test>`
      : '<http_test><error>no value specified</error></http_test>';
    const length = Buffer.byteLength(body);
    response.writeHead(200, { 'Content-Type': 'text/xml', 'Content-Length': length });
    response.end(body);
  };
}

function hello(request, response) {
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 12 });
  response.end('Hello, world');
}

if (workers > 1 && cluster.isPrimary) {
  for (let i = 0; i < workers; i++) cluster.fork();
} else {
  http
    .createServer(experiment === 'dynamic' ? dynamic(finders[setup]) : hello)
    .listen({ host, port: Number(port), backlog: Number(backlog) });
}
