// Evaluates policies for package iamsim: node simulate.mjs DIRECTORY, where the directory has the simulator. On standard input is
// {policies: {NAME: DOCUMENT}, cases: [CASE], mutants: [{policy: NAME, document: DOCUMENT,
// actions: [ACTION]}]}. On standard output is
// {got: [OUTCOME of each case], caught: [index of a case whose outcome a mutant changes, or -1]}.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const { runSimulation } = createRequire(process.argv[2] + '/')('@cloud-copilot/iam-simulate')

const { policies, cases, mutants } = JSON.parse(readFileSync(0, 'utf8'))

// A KMS key is the one resource whose own policy must let the account's policies decide. This is the policy that a key has by default.
const keyPolicy = c => ({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:${c.resource.split(':')[1]}:iam::${c.account}:root` }, Action: 'kms:*', Resource: '*' }],
})

async function evaluate(c, policy) {
  const result = await runSimulation(
    {
      request: { principal: c.principal, action: c.action, resource: { resource: c.resource, accountId: c.account }, contextVariables: c.context },
      identityPolicies: [{ name: c.policy, policy }],
      resourcePolicy: c.action.startsWith('kms:') ? keyPolicy(c) : undefined,
      serviceControlPolicies: [],
      resourceControlPolicies: [],
    },
    {},
  )
  return result.errors ? 'error: ' + JSON.stringify(result.errors) : result.result?.evaluationResult ?? result.overallResult ?? JSON.stringify(result).slice(0, 400)
}

const got = []
for (const c of cases) got.push(await evaluate(c, policies[c.policy]))

// An evaluation takes 2 ms, so the cases that most likely notice a mutant come first: those with an action of its statement.
const caught = []
for (const m of mutants) {
  const near = i => m.actions.includes(cases[i].action)
  const order = [...cases.keys()].filter(i => cases[i].policy === m.policy).sort((a, b) => near(b) - near(a))
  let first = -1
  for (const i of order) {
    if ((await evaluate(cases[i], m.document)) !== got[i]) {
      first = i
      break
    }
  }
  caught.push(first)
}
process.stdout.write(JSON.stringify({ got, caught }))
