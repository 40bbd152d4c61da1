import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InputError, readInputs } from '../src/inputs.js';

const read = (given) => readInputs((name) => ({ address: 'remuda.test:443', ...given })[name] ?? '');

test('what is not given has its default', () => {
  assert.deepEqual(read({}), {
    mode: 'provision', host: 'remuda.test', url: 'https://remuda.test:443', audience: 'https://remuda.test', hosts: undefined, minimum: undefined,
    pool: '', resourceClass: '', usageClass: 0, onDemandFallback: false, replaceInterrupted: false, instanceTypes: [], labels: [],
    maxRuntime: undefined, timeout: 600, requestId: '', ca: '',
  });
});

test('each input is read', () => {
  const got = read({
    mode: 'job', address: '[::1]:7443', hosts: '3', minimum: '2', pool: 'big', 'resource-class': 'xl', 'usage-class': 'spot', 'on-demand-fallback': 'true',
    'replace-interrupted': 'true', 'instance-types': 'c6i.*\n m6i.*', labels: 'a, b', 'max-runtime': '1h30m', timeout: '90s', 'request-id': 'r.1',
    audience: 'x', ca: '-----BEGIN CERTIFICATE-----',
  });
  assert.deepEqual(got, {
    mode: 'job', host: '[::1]', url: 'https://[::1]:7443', audience: 'x', hosts: 3, minimum: 2, pool: 'big', resourceClass: 'xl', usageClass: 2,
    onDemandFallback: true, replaceInterrupted: true, instanceTypes: ['c6i.*', 'm6i.*'], labels: ['a', 'b'], maxRuntime: 5400, timeout: 90,
    requestId: 'r.1', ca: '-----BEGIN CERTIFICATE-----',
  });
});

test('without TLS there is loopback only', () => {
  assert.equal(read({ address: 'http://127.0.0.1:7443' }).url, 'http://127.0.0.1:7443');
  assert.throws(() => read({ address: 'http://remuda.test:80' }), /input address: .* write HOST:PORT/);
});

for (const [name, values] of Object.entries({
  address: ['', 'remuda.test', 'remuda.test:0', 'remuda.test:65536', 'https://remuda.test:443', 'a b:1', 'http://127.evil.test:80'],
  mode: ['Release'],
  hosts: ['0', '201', '2.5', '-1', 'two', '1e2', '0x2'],
  minimum: ['0', '2'],
  pool: ['Big', '-a', 'a'.repeat(64)],
  'resource-class': ['a'.repeat(33)],
  'usage-class': ['SPOT'],
  'on-demand-fallback': ['yes'],
  'instance-types': ['C6i.*', Array.from({ length: 51 }, (_, i) => `c${i}`).join()],
  labels: ['a,a', 'a b', 'a'.repeat(65), Array.from({ length: 21 }, (_, i) => i).join()],
  'max-runtime': ['1', '0s', '121h', '1d', '-1h'],
  timeout: ['31m', '10 m'],
  'request-id': ['-a', 'a'.repeat(129)],
  ca: ['ca.pem'],
})) {
  test(`bad values of ${name}`, () => {
    for (const value of values) {
      assert.throws(() => read({ [name]: value }), (error) => error instanceof InputError && error.message.startsWith(`input ${name}: `), JSON.stringify(value));
    }
  });
}

test('all that is wrong is said at once', () => {
  assert.throws(() => read({ hosts: '0', pool: 'P', timeout: 'x' }), (error) => error.message.split('\n').length === 3);
});
