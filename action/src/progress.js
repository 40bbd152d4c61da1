// What the log shows while a job waits: the time, and why, when that changes.

const tickEvery = 5_000; // of the time
const explainEvery = 3; // ticks: each explanation is a call with a token of its own

/** watch writes progress until the function that it returns is called. explain gets the sentences that say why the run waits. */
export function watch(runner, clock, explain) {
  const begun = clock.now();
  let ticks = 0;
  let said = new Set();
  const timer = clock.every(tickEvery, async () => {
    ticks += 1;
    runner.info(`waiting for ${Math.round((clock.now() - begun) / 1000)} s`);
    if (ticks % explainEvery !== 1) return;
    const sentences = await explain().catch(() => []); // the wait goes on without a reason
    for (const sentence of sentences.filter((s) => !said.has(s))) runner.info(`  ${sentence}`);
    if (sentences.length > 0) said = new Set(sentences);
  });
  return () => clock.clear(timer);
}
