/** All routes of the API; the document is made from this table. Stage: api. */
import { openApiRoute } from './openapi-route.js';
import type { Route } from './route.js';
import { applyRoute } from './routes/apply.js';
import { auditRoutes } from './routes/audit.js';
import { debugRoutes } from './routes/debug.js';
import { episodeRoutes } from './routes/episodes.js';
import { fleetRoutes } from './routes/fleet.js';
import { limiterRoutes } from './routes/limiters.js';
import { policyRoutes } from './routes/policies.js';
import { sessionRoutes } from './routes/session.js';
import { shownRoute } from './routes/shown.js';
import { verbRoutes } from './routes/verbs.js';
import { streamRoute } from './stream.js';

const own: readonly Route[] = [
  ...sessionRoutes,
  ...limiterRoutes,
  ...auditRoutes,
  ...debugRoutes,
  ...episodeRoutes,
  ...policyRoutes,
  ...verbRoutes,
  applyRoute,
  ...fleetRoutes,
  shownRoute,
];

export const routes: readonly Route[] = [...own, openApiRoute([...own, streamRoute])];
