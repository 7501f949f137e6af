// A WebSocket echo by the ws library, as one wrote it for ws 0.4 on Node 0.8.
//
// server.js HOST PORT BACKLOG WORKERS
var cluster = require('cluster');
var http = require('http');
var WebSocketServer = require('ws').Server;

var host = process.argv[2];
var port = Number(process.argv[3]);
var backlog = Number(process.argv[4]);
var workers = Number(process.argv[5]);

// Without these, ws would fall back to JavaScript and say nothing.
require('ws/build/Release/bufferutil');
require('ws/build/Release/validation');

function ignore() {}

function echo(socket) {
  socket.on('message', function (data, flags) {
    // A client that has left makes it fail.
    socket.send(data, { binary: Boolean(flags.binary) }, ignore);
  });
  // ws closes the connection by itself after a frame that it refuses or a reset.
  socket.on('error', ignore);
}

if (workers > 1 && cluster.isMaster) {
  for (var i = 0; i < workers; i++) cluster.fork();
} else {
  // ws sets no backlog: the server that it is given does.
  var server = http.createServer(function (request, response) {
    response.writeHead(501, { 'Content-Type': 'text/plain' });
    response.end('Not implemented');
  });
  new WebSocketServer({ server: server }).on('connection', echo);
  server.listen(port, host, backlog);
}
