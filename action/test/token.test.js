import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { TokenError, idToken } from '../src/token.js';
import { fakeRunner } from './fakes.js';

/** serve answers each request by a function, and returns the URL that a job is given. */
async function serve(t, answer) {
  const server = createServer(answer);
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  return `http://127.0.0.1:${server.address().port}/token?api-version=2`;
}

const job = (t, url) => fakeRunner(t, { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'secret' });
const never = new AbortController().signal;

test('a token is asked for as GitHub documents it, and hidden', async (t) => {
  const runner = job(t, await serve(t, (request, response) => {
    assert.equal(request.url, '/token?api-version=2&audience=https%3A%2F%2Fremuda.test');
    assert.equal(request.headers.authorization, 'Bearer secret');
    response.end('{"value": "the.token.itself"}');
  }));
  assert.equal(await idToken(runner, 'https://remuda.test', never), 'the.token.itself');
  assert.equal(runner.log, '::add-mask::the.token.itself\n');
});

for (const [status, body, again] of [[500, '', true], [429, '', true], [403, '', false], [200, '{}', true], [200, 'no JSON', true]]) {
  test(`an answer with ${status} ${body}`, async (t) => {
    const runner = job(t, await serve(t, (_, response) => response.writeHead(status).end(body)));
    await assert.rejects(idToken(runner, 'x', never), (error) => error instanceof TokenError && error.again === again);
    assert.equal(runner.log, '');
  });
}

test('a service that hangs up', async (t) => {
  const runner = job(t, await serve(t, (request) => request.socket.destroy()));
  await assert.rejects(idToken(runner, 'x', never), (error) => error.again && /does not answer: .*closed/.test(error.message));
});

test('a job without the permission', async (t) => {
  await assert.rejects(idToken(fakeRunner(t), 'x', never), (error) => !error.again && /permissions: \{id-token: write\}/.test(error.message));
});

test('a canceled step asks no more', async (t) => {
  const canceled = new AbortController();
  const runner = job(t, await serve(t, () => canceled.abort(new Error('canceled'))));
  await assert.rejects(idToken(runner, 'x', canceled.signal), /canceled/);
});
