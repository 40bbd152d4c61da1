// Which failures of a call are worth another one, and when.
import { Code, ConnectError } from '@connectrpc/connect';
import { TokenError } from './token.js';

// The pauses double from the first to the last, so that a controld that restarts is found soon and one that is down is left alone.
const firstPause = 1_000;
const lastPause = 15_000;
// badTokens are how many tokens may be refused: one may expire on its way, but a third one is no better.
const badTokens = 3;

// What Node.js says of a connection that may well be made, or kept, the next time. A name that is not known is not among them.
const passing = new Set([
  'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN', 'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR', 'ERR_HTTP2_GOAWAY_SESSION', 'ERR_HTTP2_INVALID_SESSION', 'ERR_HTTP2_STREAM_CANCEL', 'ERR_STREAM_PREMATURE_CLOSE',
]);
// How a stream ends that controld did not end, without an error of Node.js.
const cutOff = new Set([Code.Canceled, Code.Aborted, Code.Unavailable]);

/** answered reports whether an error is controld's own word. Otherwise it is unknown what became of the call. */
export const answered = (error) => error instanceof ConnectError && error.metadata.has('grpc-status');

/** causeOf is the error of Node.js below an error, if there is one. */
function causeOf(error) {
  for (let e = error.cause; e instanceof Error; e = e.cause) if (typeof e.code === 'string') return e;
  return undefined;
}

/** worthAnother reports whether a call that failed may succeed with a new token, given how many tokens were refused so far. */
export function worthAnother(error, refused) {
  if (error instanceof TokenError) return error.again;
  if (!(error instanceof ConnectError)) return false;
  if (answered(error)) return error.code === Code.Unavailable || (error.code === Code.Unauthenticated && refused < badTokens);
  const cause = causeOf(error);
  return cause ? passing.has(cause.code) : cutOff.has(error.code);
}

/** pauseAfter is the pause after a number of failures, in milliseconds. random is in [0, 1). */
export function pauseAfter(failures, random) {
  const full = Math.min(lastPause, firstPause * 2 ** (failures - 1));
  return full / 2 + (full / 2) * random; // so that the jobs of a matrix do not come back together
}

/** textOf says what failed, in controld's words where it answered. */
export function textOf(error) {
  if (!(error instanceof ConnectError)) return error.message;
  if (answered(error)) return error.rawMessage;
  const cause = causeOf(error);
  const remedy = /CERT|SIGNATURE/.test(cause?.code) ? '. With an authority of your own, give its certificate as input ca' : '';
  return `no answer from controld: ${cause?.message ?? error.rawMessage}${remedy}`;
}

/**
 * persistently makes calls until one succeeds, one fails for a reason that will not go away, or clock has no time left. Each call gets the
 * milliseconds that are left.
 */
export async function persistently(call, { clock, until, signal, say }) {
  for (let failures = 0, refused = 0; ;) {
    try {
      return await call(Math.max(1, Math.ceil(until - clock.now()))); // whole ones, as a header of gRPC has them
    } catch (error) {
      signal.throwIfAborted();
      failures += 1;
      if (answered(error) && error.code === Code.Unauthenticated) refused += 1;
      const pause = pauseAfter(failures, clock.random());
      if (!worthAnother(error, refused) || clock.now() + pause >= until) throw error;
      say(`${textOf(error)}; trying again in ${Math.ceil(pause / 1000)} s`);
      await clock.sleep(pause, signal);
    }
  }
}
