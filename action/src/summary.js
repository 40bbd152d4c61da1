// The summary of the job: which hosts the run got, and how.

const cell = (text) => String(text || '-').replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');
const usage = { 1: 'on-demand', 2: 'spot' };
const memory = (mib) => (mib ? `${(mib / 1024).toFixed(1).replace('.0', '')} GiB` : '');

/** plural is a count with its noun. */
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** howCame says where the hosts came from. */
export const howCame = ({ reusedCount, createdCount }) => `${reusedCount} from the pool, ${createdCount} launched`;

/** summaryOf is Markdown about the hosts of a ProvisionResponse. */
export function summaryOf(response, runId, seconds) {
  const rows = response.instances.map((i) => [
    i.instanceId, i.pool, i.resourceClass, usage[i.usageClass], i.instanceType, i.cpu, memory(i.memoryMib), i.zone,
  ]);
  const table = [['Host', 'Pool', 'Class', 'Usage', 'Type', 'CPUs', 'Memory', 'Zone'], Array(8).fill('---'), ...rows];
  return [
    `### Remuda: ${plural(response.instances.length, 'host')} for run ${runId}`,
    '',
    `Ready after ${seconds.toFixed(1)} s: ${howCame(response)}. Jobs with \`runs-on: \${{ github.run_id }}\` run on them.`,
    '',
    ...table.map((row) => `| ${row.map((c) => (c === '---' ? c : cell(c))).join(' | ')} |`),
    '',
  ].join('\n');
}
