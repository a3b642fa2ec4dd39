/** What the daemon answers over HTTP: health and metrics to anybody, the API and the dashboard to who may. Stage: daemon. */

import { mountApi } from '../api/app.js';
import { hostRule } from '../api/hosts.js';
import { createSessions } from '../api/sessions.js';
import { createSharedAnswers } from '../api/shared.js';
import { mountStatic } from '../api/static.js';
import { createStreamPlaces } from '../api/stream-places.js';
import { createTokenStore, tokenPlaces } from '../api/token-store.js';
import { createWatch } from '../api/watch.js';
import type { Clock } from '../clock.js';
import type { Logger } from '../log.js';
import { resolveDataDir } from '../redis/connect.js';
import { createApp, type HealthChecks, type HttpServer, listen } from '../report/http.js';
import type { Metrics } from '../report/metrics.js';
import type { Session } from '../view/limiters.js';
import type { OwnStatuses } from '../view/own-statuses.js';
import type { DaemonConfig } from './config.js';
import type { PolicyFiles } from './policy-files.js';

export interface HttpSide {
  config: DaemonConfig;
  env: NodeJS.ProcessEnv;
  /** Where limiters are. */
  session: Session;
  owner: string;
  checks: HealthChecks;
  metrics: Metrics;
  policies: PolicyFiles;
  /** What its limiters told last. */
  own: OwnStatuses;
  clock: Clock;
  log: Logger;
}

/** Listens, and says where, and where the token lies. */
export async function openHttp(side: HttpSide): Promise<HttpServer> {
  const { config, env, session, owner, checks, metrics, policies, own, clock, log } = side;
  const { dataDir, httpHost, httpPort, httpHosts, tokensFile } = config;
  const places = tokenPlaces(tokensFile, resolveDataDir({ dataDir, env }));
  const tokens = createTokenStore({ places, clock, log });
  const hosts = hostRule(httpHost, httpHosts);
  const shared = createSharedAnswers({ clock, freshMs: Math.min(config.tickMs, 1000) });
  const watch = createWatch({
    ...{ session, own, clock, log },
    onNews: () => shared.forget(),
    onClients: (clients) => metrics.apiStreams.set(clients),
  });
  const sessions = createSessions();
  const daemon = { owner, name: config.name };
  const deps = {
    ...{ session, tokens, sessions, watch, shared, clock, log, daemon },
    streams: createStreamPlaces(),
    policies: () => ({ loaded: [...policies.files.values()], faults: policies.faults }),
  };
  const app = createApp(checks, metrics);
  mountApi(app, { deps, hosts, metrics });
  const dashboard = mountStatic(app, hosts);
  const http = await listen(app, httpHost, httpPort);
  const what = dashboard ? 'Dashboard, API, health and metrics' : 'API, health and metrics';
  const token =
    tokens.localFile === null ? '' : ` The token for changes lies in ${tokens.localFile}.`;
  log.info({ event: 'http', address: http.address }, `${what} at ${http.address}.${token}`);
  if (!hosts.loopback) {
    const count = tokens.records().length;
    log.warn(
      { event: 'http_open', tokens: count },
      `${httpHost} is not loopback: every answer but health and metrics needs one of ${count} token(s). Use TLS in front of it.`,
    );
  }
  return {
    address: http.address,
    async close() {
      watch.close();
      await http.close();
    },
  };
}
