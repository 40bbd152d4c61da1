import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeRunner } from './fakes.js';

test('values with line breaks reach the file whole', (t) => {
  const runner = fakeRunner(t);
  runner.output('a', 'one\ntwo\nb<<end');
  runner.output('c', '');
  const ends = [...runner.read('GITHUB_OUTPUT').matchAll(/^[ac]<<(.*)$/gm)].map(([, end]) => end);
  assert.equal(new Set(ends).size, 2);
  for (const end of ends) assert.match(end, /[0-9a-f-]{36}$/);
  assert.deepEqual(runner.told('GITHUB_OUTPUT'), { a: 'one\ntwo\nb<<end', c: '' });
});

test('no text makes a command or ends one', (t) => {
  const runner = fakeRunner(t);
  runner.info('a\n::set-env name=X::y');
  runner.error('100%\r\n::add-path::/x');
  runner.mask('s%\n');
  assert.equal(runner.log, 'a\n ::set-env name=X::y\n::error::100%25%0D%0A::add-path::/x\n::add-mask::s%25%0A\n');
});

test('a runner without files loses what is written to them and no more', (t) => {
  const runner = fakeRunner(t, { GITHUB_OUTPUT: '', GITHUB_STEP_SUMMARY: '' });
  runner.output('a', 'b');
  runner.summary('x');
});

test('inputs are without spaces around them', (t) => {
  const runner = fakeRunner(t, { 'INPUT_USAGE-CLASS': ' spot\n' });
  assert.equal(runner.input('usage-class'), 'spot');
  assert.equal(runner.input('none'), '');
});
