// The job's ID token: who this workflow is, signed by GitHub for one audience (docs.github.com, "OpenID Connect reference").

/** TokenError says why there is no token. again: whether another try may get one. */
export class TokenError extends Error {
  constructor(message, again = false) {
    super(message);
    this.again = again;
  }
}

const MISSING = 'This job may not ask for an ID token. Write "permissions: {id-token: write}" into the job. A pull_request run of a fork '
  + 'gets none from GitHub whatever the job says: it gets hosts by webhook alone.';

// answerWithin bounds one request for a token, which GitHub answers in a fraction of a second.
const answerWithin = 10_000;

/** idToken gets a new token, which is good for one call of controld, and has the runner hide it. */
export async function idToken(runner, audience, signal) {
  const url = runner.env.ACTIONS_ID_TOKEN_REQUEST_URL;
  const secret = runner.env.ACTIONS_ID_TOKEN_REQUEST_TOKEN;
  if (!url || !secret) throw new TokenError(MISSING);
  let answer;
  try {
    answer = await fetch(`${url}&audience=${encodeURIComponent(audience)}`, {
      headers: { authorization: `Bearer ${secret}`, accept: 'application/json' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(answerWithin)]),
    });
    const value = answer.ok ? (await answer.json()).value : undefined;
    if (typeof value === 'string' && value !== '') {
      runner.mask(value);
      return value;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw new TokenError(`GitHub's token service does not answer: ${reasonOf(error)}`, true);
  }
  const again = answer.ok || answer.status >= 500 || answer.status === 429;
  throw new TokenError(`GitHub's token service answers with status ${answer.status}${answer.ok ? ' and no token' : ''}`, again);
}

/** reasonOf is the text of a failed fetch, whose own message is only "fetch failed". */
const reasonOf = (error) => (error.cause?.message ?? error.message);
