/** The daemons, who leads what, and the Redis of all. Stage: api. */
import { readFleet } from '../../view/fleet.js';
import { route } from '../route.js';
import { fleetAnswer } from '../schemas/fleet.js';

export const fleetRoutes = [
  route({
    method: 'get',
    path: '/fleet',
    id: 'readFleet',
    summary: 'The daemons that live, who leads what, and how the Redis of all of them fares.',
    role: 'reader',
    answer: fleetAnswer,
    async handle({ session, deps }) {
      const view = await readFleet(session, () => deps.clock.nowMs());
      const daemons = view.daemons.map((one) => ({
        ...one,
        self: one.owner === deps.daemon.owner,
      }));
      return { schema: 1, ...view, daemons };
    },
  }),
];
