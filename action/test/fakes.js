// What the tests have in the place of the runner, of time, and of controld.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Code, ConnectError } from '@connectrpc/connect';
import { Runner } from '../src/runner.js';

/** fakeRunner is a Runner with files of its own and what it wrote. t is the test. */
export function fakeRunner(t, env = {}) {
  const dir = mkdtempSync(path.join(tmpdir(), 'action-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const files = {};
  for (const name of ['GITHUB_OUTPUT', 'GITHUB_STATE', 'GITHUB_STEP_SUMMARY']) {
    files[name] = path.join(dir, name);
    writeFileSync(files[name], '');
  }
  const run = { GITHUB_REPOSITORY: 'acme/shop', GITHUB_RUN_ID: '41', GITHUB_RUN_ATTEMPT: '2', GITHUB_JOB: 'hosts', GITHUB_ACTION: '__self' };
  const runner = new Runner({ INPUT_ADDRESS: 'remuda.test:443', ...run, ...files, ...env }, (text) => { runner.log += text; });
  runner.log = '';
  runner.read = (name) => readFileSync(files[name], 'utf8');
  /** told are the values in a file, by name; the last one of a name counts. */
  runner.told = (name) => Object.fromEntries([...runner.read(name).matchAll(/^(.+)<<(.+)\n([^]*?)\n\2\n/gm)].map(([, key, , value]) => [key, value]));
  return runner;
}

/** fakeClock is a clock that a sleep puts forward. Its timers run when a test says so. */
export function fakeClock() {
  const clock = {
    time: 0,
    ticks: new Set(),
    now: () => clock.time,
    random: () => 0.5,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      clock.time += ms;
    },
    every: (ms, tick) => {
      const timer = { ms, tick };
      clock.ticks.add(timer);
      return timer;
    },
    clear: (timer) => clock.ticks.delete(timer),
    async tick() {
      for (const { ms, tick } of clock.ticks) {
        clock.time += ms;
        await tick();
      }
    },
  };
  return clock;
}

/** answer is an error that controld has answered. */
export const answer = (code, message) => new ConnectError(message, code, { 'grpc-status': String(code) });

/** lost is an error of a connection. */
export function lost(code, name = Code.Unavailable) {
  const error = new ConnectError('lost', name);
  error.cause = Object.assign(new Error(`it is ${code}`), { code });
  return error;
}

/** fakeFleet answers each call by the next of a list: an error is thrown, a function is called, anything else is the answer. */
export function fakeFleet(answers) {
  const fleet = { calls: [] };
  for (const method of ['provision', 'release', 'explain']) {
    fleet[method] = async (request, options) => {
      fleet.calls.push({ method, request, timeoutMs: options.timeoutMs });
      options.sending?.();
      let next = answers[method].shift();
      if (typeof next === 'function') next = await next(options);
      if (next instanceof Error) throw next;
      return next;
    };
  }
  return fleet;
}

export const twoHosts = {
  instances: [
    { instanceId: 'i-1', pool: 'default', resourceClass: 'large', usageClass: 1, instanceType: 'c6i.large', cpu: 2, memoryMib: 4096, zone: 'a' },
    { instanceId: 'i-2', pool: 'a|b', resourceClass: 'large', usageClass: 2, instanceType: '', cpu: 0, memoryMib: 1536, zone: '' },
  ],
  reusedCount: 1,
  createdCount: 1,
  requestId: 'attempt-2-hosts-__self',
};
