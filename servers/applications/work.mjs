// Loaded before a server of node:http (node --import): each answer comes after WORK_US of CPU time.
import http from 'node:http';

const WORK_US = 10_000;
const { createServer } = http;

function spent_us(before) {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

http.createServer = (answer) =>
  createServer((request, response) => {
    const before = process.cpuUsage();
    while (spent_us(before) < WORK_US);
    answer(request, response);
  });
