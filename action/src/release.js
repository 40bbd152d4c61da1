// Giving hosts back. It is safe to repeat, and a run without hosts is no error.
import { persistently } from './retry.js';
import { runOf } from './run.js';
import { plural } from './summary.js';

/** release gives back all hosts of the run, within some milliseconds. Busy ones finish their job first. */
export async function release(runner, fleet, { clock, signal, within }) {
  const request = runOf(runner.env);
  const { instances } = await persistently((timeoutMs) => fleet.release(request, { signal, timeoutMs }), {
    clock, signal, until: clock.now() + within, say: (text) => runner.info(text),
  });
  runner.info(`Run ${request.runId} has given back ${plural(instances.length, 'host')}`);
}
