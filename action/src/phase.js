// How far this step has come, which its post phase reads.

export const Phase = Object.freeze({
  begun: 'begun', // no request was made
  asked: 'asked', // a request was made, and it is not known what became of it
  refused: 'refused', // it has no hosts
  given: 'given', // it has hosts
  returned: 'returned', // they were given back
});

const NAME = 'phase';

/** phaseOf is the phase that was saved last; empty in the main phase itself. */
export const phaseOf = (runner) => runner.state(NAME);

/** enter saves a phase. It is saved before what it announces, since the runner may kill this process. */
export const enter = (runner, phase) => runner.saveState(NAME, phase);
