/** Looks for the embedded Redis of a data folder at each attempt to connect: a service may start before it. Stage: enforce. */
import { createConnection, Socket } from 'node:net';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import { notConfigured, readRedisFile } from './locate.js';

const DISCONNECT_TIMEOUT_MS = 2_000;

/** A connector class for one data folder; ioredis calls `connect` again by its own retry strategy. */
export function embeddedConnector(dataDir: string): NonNullable<RedisOptions['Connector']> {
  return class EmbeddedConnector extends AbstractConnector {
    constructor() {
      super(DISCONNECT_TIMEOUT_MS);
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      delete this.firstError;
      const file = readRedisFile(dataDir);
      // A rejection would end the client for good; a socket that is closed already is tried again.
      const stream = file ? createConnection({ path: file.socket }) : new Socket().destroy();
      if (!file) this.firstError = notConfigured(dataDir);
      stream.once('error', (error) => {
        this.firstError = error;
      });
      this.stream = stream;
      return stream;
    }
  };
}
