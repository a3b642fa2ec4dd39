/** The daemons, who leads what, and the Redis of all. Stage: api. */
import { readAlerts } from '../../view/alerts.js';
import { readFleet } from '../../view/fleet.js';
import { route } from '../route.js';
import { alertsAnswer, fleetAnswer } from '../schemas/fleet.js';

export const fleetRoutes = [
  route({
    method: 'get',
    path: '/fleet',
    id: 'readFleet',
    summary: 'The daemons that live, who leads what, and how the Redis of all of them fares.',
    role: 'reader',
    shared: true,
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
  route({
    method: 'get',
    path: '/alerts',
    id: 'readAlerts',
    summary: 'What fires, and what was told within a day, whichever daemon told it.',
    role: 'reader',
    shared: true,
    answer: alertsAnswer,
    handle: async ({ session }) => ({ schema: 1, ...(await readAlerts(session)) }),
  }),
];
