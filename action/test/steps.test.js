import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code, ConnectError } from '@connectrpc/connect';
import { Canceled, main } from '../src/main.js';
import { post } from '../src/post.js';
import { requestOf } from '../src/provision.js';
import { readInputs } from '../src/inputs.js';
import { requestIdOf } from '../src/run.js';
import { watch } from '../src/progress.js';
import { answer, fakeClock, fakeFleet, fakeRunner, lost, twoHosts } from './fakes.js';

const given = { INPUT_HOSTS: '2' };

function world(answers, signal = new AbortController().signal) {
  const fleet = fakeFleet(answers);
  return { fleet, clock: fakeClock(), signal, connect: () => fleet };
}

test('hosts are got with one request, however often it is sent', async (t) => {
  const runner = fakeRunner(t, given);
  const w = world({ provision: [lost('ECONNRESET'), answer(Code.Unauthenticated, 'expired'), twoHosts] });
  await main(runner, w);
  assert.equal(w.fleet.calls.length, 3);
  for (const call of w.fleet.calls) assert.deepEqual(call.request, w.fleet.calls[0].request);
  assert.deepEqual(runner.told('GITHUB_OUTPUT'), { label: '41', hosts: '["i-1","i-2"]', count: '2', reused: '1', 'request-id': twoHosts.requestId });
  assert.equal(runner.told('GITHUB_STATE').phase, 'given');
  assert.match(runner.read('GITHUB_STEP_SUMMARY'), /2 hosts for run 41[^]*1 from the pool, 1 launched[^]*\| i-1 \| default \| large \| on-demand \| c6i.large \| 2 \| 4 GiB \| a \|\n\| i-2 \| a\\\|b \| large \| spot \| - \| - \| 1.5 GiB \| - \|/);
  assert.equal(w.clock.ticks.size, 0);
});

for (const [name, error, phase] of [
  ['refused', answer(Code.PermissionDenied, 'no rule'), 'refused'],
  ['too few hosts', answer(Code.ResourceExhausted, 'found 1 of 2'), 'refused'],
  ['controld failed', answer(Code.Internal, 'oops'), 'asked'],
  ['a gateway refuses', new ConnectError('HTTP 404', Code.Unimplemented), 'asked'],
  ['nothing is known', lost('CERT_HAS_EXPIRED'), 'asked'],
]) {
  test(`a request without hosts: ${name}`, async (t) => {
    const runner = fakeRunner(t, given);
    await assert.rejects(main(runner, world({ provision: [error] })), error);
    assert.equal(runner.told('GITHUB_STATE').phase, phase);
    assert.deepEqual(runner.told('GITHUB_OUTPUT'), {});
    assert.match(runner.log, /::endgroup::/);
  });
}

for (const [name, release, phase] of [['at once', { instances: [] }, 'returned'], ['later', answer(Code.Internal, 'oops'), 'asked']]) {
  test(`a canceled step gives back ${name}`, async (t) => {
    const runner = fakeRunner(t, given);
    const canceled = new AbortController();
    const w = world({ provision: [() => { canceled.abort(new Canceled()); return answer(Code.Canceled, ''); }], release: [release] }, canceled.signal);
    await assert.rejects(main(runner, w), Canceled);
    assert.deepEqual(w.fleet.calls[1].request, { repository: 'acme/shop', runId: '41', runAttempt: 2 });
    assert.equal(runner.told('GITHUB_STATE').phase, phase);
  });
}

test('a step that is canceled before it asked gives nothing back', async (t) => {
  const runner = fakeRunner(t, given);
  const w = world({ provision: [], release: [{ instances: [] }] }, AbortSignal.abort(new Canceled()));
  w.fleet.provision = async (_, { signal }) => signal.throwIfAborted();
  await assert.rejects(main(runner, w), Canceled);
  assert.deepEqual(w.fleet.calls, []);
  assert.equal(runner.told('GITHUB_STATE').phase, 'begun');
});

test('mode release gives back, and its end does nothing', async (t) => {
  const runner = fakeRunner(t, { INPUT_MODE: 'release' });
  const w = world({ release: [answer(Code.Unavailable, 'starting'), { instances: twoHosts.instances }] });
  await main(runner, w);
  assert.match(runner.log, /Run 41 has given back 2 hosts/);
  await post(fakeRunner(t, { INPUT_MODE: 'release', STATE_phase: runner.told('GITHUB_STATE').phase }), w);
  assert.equal(w.fleet.calls.length, 2);
});

for (const [phase, mode, owed] of [
  ['begun', 'job', false], ['asked', 'provision', true], ['refused', 'job', false], ['given', 'provision', false], ['given', 'job', true], ['returned', 'job', false],
]) {
  test(`the end of a job in phase ${phase} of mode ${mode}`, async (t) => {
    const w = world({ release: [{ instances: [] }] });
    await post(fakeRunner(t, { STATE_phase: phase, INPUT_MODE: mode }), w);
    assert.equal(w.fleet.calls.length, owed ? 1 : 0);
  });
}

test('a controld that is away fails no job', async (t) => {
  const runner = fakeRunner(t, { STATE_phase: 'given', INPUT_MODE: 'job' });
  const w = world({ release: Array.from({ length: 99 }, () => lost('ECONNREFUSED')) });
  await post(runner, w);
  assert.match(runner.log, /::warning::The hosts of this run were not given back: no answer from controld/);
  assert.ok(w.clock.time <= 60_000);
});

test('the request has what the inputs say', (t) => {
  const env = { INPUT_HOSTS: '2', 'INPUT_MAX-RUNTIME': '1h', INPUT_LABELS: 'a' };
  const runner = fakeRunner(t, env);
  assert.deepEqual(requestOf(readInputs((name) => runner.input(name)), runner.env), {
    repository: 'acme/shop', runId: '41', runAttempt: 2, instanceCount: 2, minimumCount: undefined, pool: '', resourceClass: '', usageClass: 0,
    allowedInstanceTypes: [], maxRuntime: { seconds: 3600n, nanos: 0 }, timeout: { seconds: 600n, nanos: 0 }, labels: ['a'],
    allowOnDemandFallback: false, replaceInterrupted: false, requestId: 'attempt-2-hosts-__self',
  });
});

test('a request id has the characters and the length that controld takes', () => {
  const id = (job, action = 'x') => requestIdOf({ GITHUB_RUN_ATTEMPT: '1', GITHUB_JOB: job, GITHUB_ACTION: action });
  assert.equal(id('a', '__o/r@v1'), 'attempt-1-a-__o_r_v1');
  assert.equal(id('j'.repeat(200)).length, 128);
  assert.notEqual(id('j'.repeat(200), 'x'), id('j'.repeat(200), 'y'));
});

test('while a step waits it says for how long, and a reason once', async (t) => {
  const runner = fakeRunner(t);
  const clock = fakeClock();
  const reasons = [['paused'], new Error('away'), ['paused', 'resumed']];
  const explain = async () => {
    const next = reasons.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  const stop = watch(runner, clock, explain);
  for (let i = 0; i < 7; i += 1) await clock.tick();
  stop();
  const seconds = (n) => `waiting for ${n} s\n`;
  assert.equal(runner.log, `${seconds(5)}  paused\n${[10, 15, 20, 25, 30, 35].map(seconds).join('')}  resumed\n`);
  assert.equal(clock.ticks.size, 0);
});
