import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code, ConnectError } from '@connectrpc/connect';
import { pauseAfter, persistently, textOf, worthAnother } from '../src/retry.js';
import { TokenError } from '../src/token.js';
import { answer, fakeClock, lost } from './fakes.js';

for (const [name, error, want] of [
  ['controld is down', answer(Code.Unavailable, ''), true],
  ['the request is refused', answer(Code.PermissionDenied, ''), false],
  ['there are no hosts', answer(Code.ResourceExhausted, ''), false],
  ['the run was released', answer(Code.Aborted, ''), false],
  ['a token is refused', answer(Code.Unauthenticated, ''), true],
  ['the connection is refused', lost('ECONNREFUSED'), true],
  ['the connection is reset', lost('ECONNRESET', Code.Aborted), true],
  ['the stream is cut', new ConnectError('', Code.Canceled), true],
  ['the name is unknown', lost('ENOTFOUND'), false],
  ['the certificate is of an unknown authority', lost('UNABLE_TO_VERIFY_LEAF_SIGNATURE', Code.Internal), false],
  ['the deadline has passed', new ConnectError('', Code.DeadlineExceeded), false],
  ['the token service is down', new TokenError('', true), true],
  ['the job may not ask', new TokenError(''), false],
  ['our own mistake', new TypeError('x'), false],
]) {
  test(`another call after: ${name}`, () => assert.equal(worthAnother(error, 1), want));
}

test('the third token that is refused is the last', () => {
  assert.equal(worthAnother(answer(Code.Unauthenticated, ''), 2), true);
  assert.equal(worthAnother(answer(Code.Unauthenticated, ''), 3), false);
});

test('pauses double and have a bound', () => {
  assert.deepEqual([1, 2, 3, 4, 5, 60].map((n) => pauseAfter(n, 1)), [1000, 2000, 4000, 8000, 15000, 15000]);
  assert.equal(pauseAfter(1, 0), 500);
});

test('texts', () => {
  assert.equal(textOf(answer(Code.PermissionDenied, 'no rule')), 'no rule');
  assert.equal(textOf(lost('ECONNREFUSED')), 'no answer from controld: it is ECONNREFUSED');
  assert.match(textOf(lost('SELF_SIGNED_CERT_IN_CHAIN')), /input ca$/);
});

function persist(errors, { until = 599_999.5, signal = new AbortController().signal } = {}) {
  const clock = fakeClock();
  const left = [];
  const said = [];
  const call = async (ms) => {
    left.push(ms);
    if (errors.length > 0) throw errors.shift();
    return 'done';
  };
  return { left, said, clock, outcome: persistently(call, { clock, until, signal, say: (text) => said.push(text) }) };
}

test('a call is made until it succeeds', async () => {
  const { outcome, left, said } = persist([answer(Code.Unavailable, 'starting'), lost('ECONNRESET')]);
  assert.equal(await outcome, 'done');
  assert.deepEqual(left, [600_000, 599_250, 597_750]);
  assert.deepEqual(said, ['starting; trying again in 1 s', 'no answer from controld: it is ECONNRESET; trying again in 2 s']);
});

test('a call that has no time left is not made', async () => {
  const { outcome, left } = persist(Array.from({ length: 9 }, () => answer(Code.Unavailable, 'away')), { until: 3000 });
  await assert.rejects(outcome, /away/);
  assert.equal(left.length, 3);
});

test('nothing is tried after a signal', async () => {
  const signal = AbortSignal.abort(new Error('canceled'));
  await assert.rejects(persist([answer(Code.Unavailable, 'away')], { signal }).outcome, /canceled/);
});
