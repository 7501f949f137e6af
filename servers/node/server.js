// The post's dynamic answer, and "Hello, world" in the experiments that ask for it,
// as one wrote it for Node 0.10.
//
// server.js EXPERIMENT SETUP HOST PORT BACKLOG WORKERS
var cluster = require('cluster');
var http = require('http');
var querystring = require('querystring');
var url = require('url');

var experiment = process.argv[2];
var setup = process.argv[3];
var host = process.argv[4];
var port = Number(process.argv[5]);
var backlog = Number(process.argv[6]);
var workers = Number(process.argv[7]);

var ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

function escape(text) {
  return text.replace(/[&<>]/g, function (character) { return ENTITIES[character]; });
}

// How each setup finds the value of the query's "value".
var finders = {
  // As in the post.
  'parsing': function (target) {
    return url.parse(target, true).query.value;
  },
  // As a commenter asked: only right for a value that is the first parameter.
  'no-parsing': function (target) {
    return target.slice(0, 8) === '/?value=' &&
      querystring.unescape(target.slice(8).split('&', 1)[0]);
  }
};

function dynamic(find) {
  return function (request, response) {
    var value = find(request.url);
    var body = value
      ? '<http_test><value>' + escape(value) + '</value></http_test>'
      : '<http_test><error>no value specified</error></http_test>';
    response.writeHead(200, { 'Content-Type': 'text/xml', 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
  };
}

function hello(request, response) {
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 12 });
  response.end('Hello, world');
}

if (workers > 1 && cluster.isMaster) {
  for (var i = 0; i < workers; i++) cluster.fork();
} else {
  http
    .createServer(experiment === 'dynamic' ? dynamic(finders[setup]) : hello)
    .listen(port, host, backlog);
}
