// The inputs of action.yml: each is checked, and all that is wrong is reported at once.

/** InputError names every input that is wrong, each with what to write. */
export class InputError extends Error {}

const MODES = ['provision', 'release', 'job'];
const USAGE_CLASSES = { '': 0, 'on-demand': 1, spot: 2 }; // as UsageClass of the contract
const NAME = /^[a-z0-9][a-z0-9-]*$/;
const LABEL = /^[A-Za-z0-9._-]{1,64}$/;
const INSTANCE_TYPE = /^[a-z0-9.*-]{1,64}$/;
const REQUEST_ID = /^[0-9A-Za-z][0-9A-Za-z_.-]{0,127}$/;
const UNITS = { h: 3600, m: 60, s: 1 };
const HOUR = 3600;

/** readInputs takes a function from the name of an input to its text. It throws InputError. */
export function readInputs(input) {
  const problems = [];
  const wrong = (name, remedy) => problems.push(`input ${name}: ${JSON.stringify(input(name))} will not do; write ${remedy}`);
  const read = reader(input, wrong);
  const inputs = {
    mode: read.oneOf('mode', MODES),
    ...read.endpoint('address'),
    hosts: read.number('hosts', 1, 200),
    minimum: read.number('minimum', 1, 200),
    pool: read.name('pool', 63),
    resourceClass: read.name('resource-class', 32),
    usageClass: USAGE_CLASSES[read.oneOf('usage-class', Object.keys(USAGE_CLASSES))],
    onDemandFallback: read.flag('on-demand-fallback'),
    replaceInterrupted: read.flag('replace-interrupted'),
    instanceTypes: read.list('instance-types', 50, INSTANCE_TYPE, 'patterns such as c6i.*'),
    labels: read.list('labels', 20, LABEL, 'labels of letters, digits, and . _ -'),
    maxRuntime: read.seconds('max-runtime', 120 * HOUR, '45m, at most 120h'),
    timeout: read.seconds('timeout', HOUR / 2, '10m, at most 30m') ?? 600,
    requestId: read.requestId('request-id'),
    ca: read.certificate('ca'),
  };
  inputs.audience = input('audience') || `https://${inputs.host}`;
  if (inputs.minimum > (inputs.hosts ?? 1)) wrong('minimum', 'a number that is at most that of input hosts');
  if (problems.length > 0) throw new InputError(problems.join('\n'));
  return inputs;
}

/** reader has a function for each kind of input. One that is wrong is reported, and its value is undefined. */
const reader = (input, wrong) => ({
  oneOf(name, values) {
    const text = input(name) || values[0];
    if (!values.includes(text)) wrong(name, `one of ${values.filter(Boolean).join(', ')}`);
    return text;
  },
  number(name, least, most) {
    const text = input(name);
    if (text === '') return undefined;
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    wrong(name, `a number from ${least} to ${most}`);
    return undefined;
  },
  name(name, longest) {
    const text = input(name);
    if (text !== '' && !(NAME.test(text) && text.length <= longest)) wrong(name, `at most ${longest} of a-z, 0-9 and -`);
    return text;
  },
  flag(name) {
    return this.oneOf(name, ['false', 'true']) === 'true';
  },
  list(name, most, pattern, what) {
    const items = input(name).split(/[,\n]/).map((item) => item.trim()).filter(Boolean);
    if (items.length > most || new Set(items).size < items.length || !items.every((item) => pattern.test(item))) {
      wrong(name, `at most ${most} ${what}, none twice, separated by commas`);
    }
    return items;
  },
  seconds(name, most, example) {
    const text = input(name);
    if (text === '') return undefined;
    const parts = /^(?:\d{1,6}[hms])+$/.test(text) ? [...text.matchAll(/(\d+)([hms])/g)] : [];
    const seconds = parts.reduce((sum, [, count, unit]) => sum + count * UNITS[unit], 0);
    if (seconds > 0 && seconds <= most) return seconds;
    wrong(name, `a time such as ${example}`);
    return undefined;
  },
  requestId(name) {
    const text = input(name);
    if (text !== '' && !REQUEST_ID.test(text)) wrong(name, 'at most 128 letters, digits, and _ . -, the first a letter or digit');
    return text;
  },
  certificate(name) {
    const text = input(name);
    if (text !== '' && !text.includes('-----BEGIN CERTIFICATE-----')) wrong(name, 'the text of a certificate in PEM, not the name of a file');
    return text;
  },
  endpoint(name) {
    const endpoint = endpointOf(input(name));
    if (!endpoint) wrong(name, 'HOST:PORT such as remuda.acme.com:443; http:// before it is for controld dev, on loopback only');
    return endpoint ?? {};
  },
});

/** endpointOf reads HOST:PORT. A token must not leave the machine without TLS, so http:// is for loopback only. */
function endpointOf(text) {
  const match = /^(http:\/\/)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(text);
  if (!match || Number(match[3]) < 1 || Number(match[3]) > 65535) return undefined;
  const [, plain, host, port] = match;
  if (plain && !(host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host))) return undefined;
  return { host, url: `${plain ? 'http' : 'https'}://${host}:${port}` };
}
