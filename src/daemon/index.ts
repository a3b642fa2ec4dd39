/** Public surface of `flyball/daemon`: the daemon for those who embed it in a process of their own. Stage: daemon. */
export { type DaemonConfig, readConfig } from './config.js';
export { type Daemon, type DaemonOptions, startDaemon } from './daemon.js';
