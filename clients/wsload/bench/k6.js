// The benchmark's load, as k6 makes it: SOCKETS on each of VUS event loops, each socket sending
// PAYLOAD every INTERVAL_MS, or (INTERVAL_MS 0) again after each echo with WINDOW in flight.
import { WebSocket } from 'k6/websockets';
import { Counter, Trend } from 'k6/metrics';

const sockets = Number(__ENV.SOCKETS);
const intervalMs = Number(__ENV.INTERVAL_MS);
const durationMs = Number(__ENV.DURATION_MS);
const inFlight = Number(__ENV.WINDOW || 1);
const payload = 'x'.repeat(33);

const echoes = new Counter('echoes');
const latency = new Trend('latency_ms');

export const options = {
  scenarios: { load: { executor: 'per-vu-iterations', vus: Number(__ENV.VUS), iterations: 1, maxDuration: '10m' } },
  summaryTrendStats: ['p(50)', 'p(99)'],
};

export default function () {
  for (let index = 0; index < sockets; index += 1) {
    const socket = new WebSocket(__ENV.URL);
    const due = [];
    const send = (at) => { due.push(at); socket.send(payload); };
    socket.addEventListener('open', () => {
      if (intervalMs === 0) {
        for (let n = 0; n < inFlight; n += 1) send(Date.now());
      } else {
        let next = Date.now() + Math.random() * intervalMs;
        const tick = () => {
          send(next);
          next += intervalMs;
          setTimeout(tick, Math.max(0, next - Date.now()));
        };
        setTimeout(tick, next - Date.now());
      }
      setTimeout(() => socket.close(), durationMs);
    });
    socket.addEventListener('message', () => {
      echoes.add(1);
      latency.add(Date.now() - due.shift());
      if (intervalMs === 0) send(Date.now());
    });
  }
}

export function handleSummary(data) {
  return { [__ENV.SUMMARY]: JSON.stringify(data.metrics) };
}
