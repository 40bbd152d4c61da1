// The workflow run that this job is of, and what identifies the request of this step.
import { createHash } from 'node:crypto';

const longest = 128; // of a request id

/** runOf reads the run off the environment that the runner gives to each step. */
export function runOf(env) {
  return {
    repository: env.GITHUB_REPOSITORY,
    runId: env.GITHUB_RUN_ID,
    runAttempt: Number(env.GITHUB_RUN_ATTEMPT || 1),
  };
}

/** requestIdOf is the same for each try of a step, and another one for each step, job and attempt. */
export function requestIdOf(env) {
  const id = ['attempt', env.GITHUB_RUN_ATTEMPT || 1, env.GITHUB_JOB, env.GITHUB_ACTION].filter(Boolean).join('-').replaceAll(/[^0-9A-Za-z_.-]/g, '_');
  if (id.length <= longest) return id;
  const sum = createHash('sha256').update(id).digest('hex').slice(0, 16);
  return `${id.slice(0, longest - sum.length - 1)}-${sum}`;
}
