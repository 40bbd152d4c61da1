// The program of both phases: the runner starts it for the step, and again at the end of the job.
import { setTimeout as sleep } from 'node:timers/promises';
import { newFleet } from './client.js';
import { Canceled, main } from './main.js';
import { phaseOf } from './phase.js';
import { post } from './post.js';
import { textOf } from './retry.js';
import { Runner } from './runner.js';
import { idToken } from './token.js';

const clock = {
  now: () => performance.now(),
  random: () => Math.random(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
  every: (ms, tick) => setInterval(tick, ms),
  clear: (timer) => clearInterval(timer),
};

const runner = new Runner(process.env, (text) => process.stdout.write(text));
const canceled = new AbortController();
// The runner sends the first, and the second some seconds later.
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => canceled.abort(new Canceled()));
const world = {
  clock,
  signal: canceled.signal,
  connect: (inputs) => newFleet(inputs, (signal) => idToken(runner, inputs.audience, signal)),
};

let code = 0;
try {
  await (phaseOf(runner) ? post : main)(runner, world);
} catch (error) {
  runner.error(textOf(canceled.signal.aborted ? canceled.signal.reason : error));
  code = 1;
}
process.stdout.write('', () => process.exit(code)); // a connection to controld may still be open
