// The main phase of the step.
import { readInputs } from './inputs.js';
import { Phase, enter } from './phase.js';
import { isRefusal, provision } from './provision.js';
import { release } from './release.js';

// releaseWithin is the patience of a step whose only work this is. controld restarts in seconds.
const releaseWithin = 120_000;
// canceledWithin is for the one call of a step that is canceled: the runner kills it 10 s after it said so.
const canceledWithin = 5_000;

/** Canceled is the reason of a signal that the runner's own signal has aborted. */
export class Canceled extends Error {
  constructor() {
    super('The step was canceled.');
  }
}

/** main does what input mode says. connect makes a client of the inputs. */
export async function main(runner, { clock, signal, connect }) {
  enter(runner, Phase.begun);
  const inputs = readInputs((name) => runner.input(name));
  const fleet = connect(inputs);
  if (inputs.mode === 'release') {
    await release(runner, fleet, { clock, signal, within: releaseWithin });
    return;
  }
  let phase = Phase.begun;
  const reach = (next) => enter(runner, phase = next);
  try {
    await provision(runner, inputs, fleet, { clock, signal, sending: () => reach(Phase.asked) });
  } catch (error) {
    if (signal.aborted && phase === Phase.asked) await giveBack(runner, fleet, clock);
    else if (isRefusal(error)) enter(runner, Phase.refused);
    throw error;
  }
  enter(runner, Phase.given);
}

/** giveBack is for a step that is canceled. If it fails, the post phase tries again. */
async function giveBack(runner, fleet, clock) {
  try {
    await release(runner, fleet, { clock, signal: AbortSignal.timeout(canceledWithin), within: canceledWithin });
    enter(runner, Phase.returned);
  } catch (error) {
    runner.info(`could not give the hosts back yet: ${error.message}`);
  }
}
