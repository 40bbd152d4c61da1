// FleetService of controld, over gRPC. Each call shows an ID token of its own.
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { FleetService } from './gen/remuda/v1/fleet_service_pb.js';

// pingEvery keeps the connection of a long wait alive in what lies between, and finds one that is dead. controld takes a ping in 10 s.
const pingEvery = 30_000;

/** newFleet is a client of the controld at url. token makes a token, given a signal; ca is the PEM of an authority, or empty. */
export function newFleet({ url, ca }, token) {
  const client = createClient(FleetService, createGrpcTransport({
    baseUrl: url, pingIntervalMs: pingEvery, nodeOptions: ca ? { ca } : {},
  }));
  const call = (method) => async (request, { signal, timeoutMs, sending }) => {
    const headers = { authorization: `Bearer ${await token(signal)}` };
    sending?.(); // from here on it may be answered
    return client[method](request, { headers, signal, timeoutMs });
  };
  return { provision: call('provision'), release: call('release'), explain: call('explainRun') };
}
