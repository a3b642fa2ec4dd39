/** Policies: what the files of this daemon would change, and the versions that are kept. Stage: api. */
import { planView } from '../../view/plan.js';
import { policyHistory } from '../../view/policy-history.js';
import { limiterOf, route } from '../route.js';
import { policiesAnswer, policyHistoryAnswer } from '../schemas/policies.js';

export const policyRoutes = [
  route({
    method: 'get',
    path: '/policies',
    id: 'planPolicies',
    summary:
      'What the policy files of this daemon would change, drift, and faults of files, as `flyball plan --json`. Another daemon may have other files.',
    role: 'reader',
    shared: true,
    answer: policiesAnswer,
    async handle({ session, deps, caller }) {
      const { loaded, faults } = deps.policies();
      const plan = await planView(session, loaded, caller.name ?? '', true);
      return { schema: 1, ...plan, faults: [...faults] };
    },
  }),
  route({
    method: 'get',
    path: '/policies/{limiter}/history',
    id: 'readPolicyHistory',
    summary: 'The versions of a policy that are kept, as `flyball policy history --json`.',
    role: 'reader',
    answer: policyHistoryAnswer,
    faults: [404],
    async handle(call) {
      const address = await limiterOf(call);
      return { schema: 1, ...(await policyHistory(call.session.redis, address)) };
    },
  }),
];
