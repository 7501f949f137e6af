// Loaded before a server of node:http (node --import): each request costs TURNS turns of a loop more.
import http from 'node:http';

const TURNS = 800_000;
const { createServer } = http;
// Read by nobody; without it a compiler may leave the loop out.
export const sink = { sum: 0 };

http.createServer = (answer) =>
  createServer((request, response) => {
    let sum = 0;
    for (let turn = 0; turn < TURNS; turn++) sum = (sum + turn) | 0;
    sink.sum = sum;
    answer(request, response);
  });
