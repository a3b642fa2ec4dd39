/** Why there is no connection, in the words of who refused it: no call ever hears of a login that is wrong. Stage: enforce. */
import type { RedisClient } from './options.js';

export interface ConnectionFault {
  /** null: there is a connection, or nothing was said. */
  why(): string | null;
  close(): void;
}

export function watchConnection(redis: RedisClient): ConnectionFault {
  let fault: string | null = null;
  const onFault = ({ message }: Error) => {
    fault = message;
  };
  const onReady = () => {
    fault = null;
  };
  redis.on('error', onFault);
  redis.on('ready', onReady);
  return {
    why: () => (redis.status === 'ready' ? null : fault),
    close() {
      redis.off('error', onFault);
      redis.off('ready', onReady);
    },
  };
}
