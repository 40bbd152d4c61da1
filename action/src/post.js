// The post phase of the step, which runs at the end of the job however it ended.
import { readInputs } from './inputs.js';
import { Phase, phaseOf } from './phase.js';
import { release } from './release.js';
import { textOf } from './retry.js';

// postWithin is the patience of the end of a job: it must not hold up the run for long.
const postWithin = 60_000;

/** owes reports whether this step has to give hosts back: those of this job alone, and those that it may have without knowing. */
export const owes = (phase, mode) => phase === Phase.asked || (phase === Phase.given && mode === 'job');

/** post gives back what the step owes. A controld that is away fails no job: the hosts end with their run or at their maximum runtime. */
export async function post(runner, { clock, signal, connect }) {
  if (!owes(phaseOf(runner), runner.input('mode'))) return;
  try {
    const inputs = readInputs((name) => runner.input(name));
    await release(runner, connect(inputs), { clock, signal, within: postWithin });
  } catch (error) {
    runner.warning(`The hosts of this run were not given back: ${textOf(error)}. They end at their maximum runtime at the latest.`);
  }
}
