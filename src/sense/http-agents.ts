/** Connections that all sources of one kind of connection share: a thousand queries need no thousand sockets. Stage: sense. */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';

export type Agent = HttpAgent | HttpsAgent;

export interface AgentLease {
  readonly agent: Agent;
  /** It goes on for those who hold it; who asks anew gets another. */
  retire(): void;
  release(): void;
}

/** Prometheus itself takes 512 at the most; what waits for a free one waits within its deadline. */
const MOST_SOCKETS = 32;

interface Shared {
  agent: Agent;
  users: number;
}

const shared = new Map<string, Shared>();

/** One agent for each key, ended by its last user. `make` reads what TLS needs. */
export function leaseAgent(key: string, tls: () => Record<string, Buffer> | null): AgentLease {
  let entry = shared.get(key);
  if (entry === undefined) {
    const files = tls();
    const common = { keepAlive: true, maxSockets: MOST_SOCKETS, maxFreeSockets: MOST_SOCKETS };
    const agent = files === null ? new HttpAgent(common) : new HttpsAgent({ ...common, ...files });
    entry = { agent, users: 0 };
    shared.set(key, entry);
  }
  const own = entry;
  own.users += 1;
  let held = true;
  const retire = () => {
    if (shared.get(key) === own) shared.delete(key);
  };
  return {
    agent: own.agent,
    retire,
    release() {
      if (!held) return;
      held = false;
      own.users -= 1;
      if (own.users > 0) return;
      retire();
      own.agent.destroy();
    },
  };
}
