/** What the plant keeps of a run: each second as it was for clients, and the telemetry that a service would flush. Stage: simulate. */
import { binOf } from '../histogram.js';
import { type Bins, MAX_BIN, MIN_BIN, type Readings } from '../sense/readings.js';
import { countGeneration, emptyCounts, emptySecond, type Second } from './counts.js';

/** Gauges at the end of a second. */
export type SecondGauges = Pick<Second, 'inFlight' | 'queue' | 'rate' | 'inFlightMax' | 'open'>;

export interface PlantRecord {
  readonly seconds: Second[];
  offered(first: boolean): void;
  denied(by: string): void;
  admitted(): void;
  /** A connection was waited for. */
  waited(ms: number): void;
  /** The service is done; `heard`: the client was still there. */
  answered(ms: number, ok: boolean, generation: number, heard: boolean): void;
  /** A client left. */
  left(afterMs: number): void;
  closeSecond(gauges: SecondGauges): void;
  /** What the service would report now; `blind`: it does not come through. */
  flush(nowMs: number, inFlight: number, poolWaiting: number | null, blind: boolean): void;
  telemetry(): Readings['telemetry'];
}

export interface RecordOptions {
  /** An answer within this is good. */
  goodMs: number;
  failureCode: string;
  /** Only what is answered in each second: a search needs no response times and no telemetry. */
  lean: boolean;
}

export function createRecord({ goodMs, failureCode, lean }: RecordOptions): PlantRecord {
  const seconds: Second[] = [];
  const flushes: Readings['telemetry'][] = [];
  const heardBins = new Uint32Array(MAX_BIN - MIN_BIN + 1);
  const latencyBins = new Uint32Array(MAX_BIN - MIN_BIN + 1);
  const waitBins = new Uint32Array(MAX_BIN - MIN_BIN + 1);
  let second = emptySecond();
  let counts = emptyCounts();
  let flushedMs = 0;

  return {
    seconds,
    offered(first) {
      if (first) second.offered++;
      second.attempts++;
      counts.offered++;
    },
    denied(by) {
      second.denied++;
      counts.denied[by] = (counts.denied[by] ?? 0) + 1;
    },
    admitted() {
      second.admitted++;
      counts.admitted++;
    },
    waited(ms) {
      if (lean) return;
      waitBins[place(ms)]!++;
      counts.dbWaitSumMs += ms;
    },
    answered(ms, ok, generation, heard) {
      if (heard) {
        if (!ok) second.failed++;
        else if (ms <= goodMs) second.good++;
        else second.late++;
      }
      if (lean) return;
      const at = place(ms);
      latencyBins[at]!++;
      if (heard) heardBins[at]!++;
      counts.latencySumMs += ms;
      countGeneration(counts, generation, ok, failureCode);
      if (ok) counts.ok++;
      else {
        counts.failed++;
        counts.codes[failureCode] = (counts.codes[failureCode] ?? 0) + 1;
      }
    },
    left(afterMs) {
      second.timedOut++;
      if (!lean) heardBins[place(afterMs)]!++;
    },
    closeSecond(gauges) {
      Object.assign(second, gauges);
      if (!lean) second.latency = emptied(heardBins);
      seconds.push(second);
      second = emptySecond();
    },
    flush(nowMs, inFlight, poolWaiting, blind) {
      if (lean) return;
      counts.latency = emptied(latencyBins);
      counts.dbWait = emptied(waitBins);
      if (!blind) {
        flushes.push({
          kind: 'telemetry',
          fromMs: flushedMs,
          toMs: nowMs,
          processes: 1,
          reporting: 1,
          inFlight,
          oldestMs: 0,
          poolWaiting,
          ...counts,
        });
      }
      counts = emptyCounts();
      flushedMs = nowMs;
    },
    telemetry: () => flushes.shift() ?? { kind: 'missing', reason: 'no_data' },
  };
}

function place(ms: number): number {
  return (binOf(ms) ?? 0) - MIN_BIN;
}

/** The counts as bins; the array begins anew. */
function emptied(dense: Uint32Array): Bins {
  const bins: Bins = {};
  for (let i = 0; i < dense.length; i++) if (dense[i]! > 0) bins[i + MIN_BIN] = dense[i]!;
  dense.fill(0);
  return bins;
}
