// Getting hosts: one request, repeated with new tokens until it is answered.
import { Code } from '@connectrpc/connect';
import { watch } from './progress.js';
import { answered, persistently } from './retry.js';
import { requestIdOf, runOf } from './run.js';
import { howCame, plural, summaryOf } from './summary.js';

// beyondTimeout is for the answer to come: controld itself waits for as long as the timeout says.
const beyondTimeout = 30_000;
// explainWithin bounds a call that only informs.
const explainWithin = 4_000;

// What controld answers when the request is over and has no hosts.
const REFUSALS = new Set([
  Code.InvalidArgument, Code.NotFound, Code.AlreadyExists, Code.PermissionDenied, Code.ResourceExhausted, Code.FailedPrecondition,
  Code.Aborted, Code.Unimplemented, Code.Unauthenticated,
]);

/** isRefusal reports whether controld has answered that there will be no hosts, so that there are none to give back. */
export const isRefusal = (error) => answered(error) && REFUSALS.has(error.code);

const duration = (seconds) => (seconds === undefined ? undefined : { seconds: BigInt(seconds), nanos: 0 });

/** requestOf is the ProvisionRequest. It is the same each time, or controld would take it for another one of the same id. */
export function requestOf(inputs, env) {
  return {
    ...runOf(env),
    instanceCount: inputs.hosts,
    minimumCount: inputs.minimum,
    pool: inputs.pool,
    resourceClass: inputs.resourceClass,
    usageClass: inputs.usageClass,
    allowedInstanceTypes: inputs.instanceTypes,
    maxRuntime: duration(inputs.maxRuntime),
    timeout: duration(inputs.timeout),
    labels: inputs.labels,
    allowOnDemandFallback: inputs.onDemandFallback,
    replaceInterrupted: inputs.replaceInterrupted,
    requestId: inputs.requestId || requestIdOf(env),
  };
}

/** provision gets the hosts, and writes outputs and summary. sending is called before each request that may get hosts. */
export async function provision(runner, inputs, fleet, { clock, signal, sending }) {
  const request = requestOf(inputs, runner.env);
  const begun = clock.now();
  runner.group(`Waiting for ${plural(request.instanceCount ?? 1, 'host')} for run ${request.runId} of ${request.repository}`);
  const stopWatching = watch(runner, clock, () => explain(fleet, request, signal));
  let response;
  try {
    response = await persistently((timeoutMs) => fleet.provision(request, { signal, timeoutMs, sending }), {
      clock, signal, until: begun + inputs.timeout * 1000 + beyondTimeout, say: (text) => runner.info(text),
    });
  } finally {
    stopWatching();
    runner.endGroup();
  }
  report(runner, request, response, (clock.now() - begun) / 1000);
}

async function explain(fleet, { repository, runId }, signal) {
  const { sentences } = await fleet.explain({ repository, runId }, { signal, timeoutMs: explainWithin });
  return sentences;
}

function report(runner, request, response, seconds) {
  const ids = response.instances.map((i) => i.instanceId);
  runner.info(`Run ${request.runId} has ${plural(ids.length, 'host')} after ${seconds.toFixed(1)} s (${howCame(response)}): ${ids.join(', ')}`);
  runner.output('label', request.runId);
  runner.output('hosts', JSON.stringify(ids));
  runner.output('count', String(ids.length));
  runner.output('reused', String(response.reusedCount));
  runner.output('request-id', response.requestId);
  runner.summary(summaryOf(response, request.runId, seconds));
}
