/** Does a Redis client send unanswered commands again by itself? Stage: enforce. */
import type { RedisClient } from './options.js';

/** Such a client might give the same tokens back twice: they are lost instead. */
export function sendsAgain(redis: RedisClient): boolean {
  const { autoResendUnfulfilledCommands } = redis.options as {
    autoResendUnfulfilledCommands?: boolean;
  };
  return redis.isCluster || autoResendUnfulfilledCommands !== false;
}
