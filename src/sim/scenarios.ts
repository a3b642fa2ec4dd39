/** The named scenarios of `flyball simulate`. Load is in multiples of what the service carries. Stage: simulate. */
import { jumps, lines, type Scenario } from './scenario.js';

const LIST = [
  {
    name: 'steady',
    says: 'Six tenths of the capacity: nothing must be denied.',
    durationS: 180,
    phases: [0],
    disturbances: [],
    at: () => ({ load: 0.6 }),
  },
  {
    name: 'surge',
    says: 'Load jumps to four times the capacity for a minute.',
    durationS: 180,
    phases: [0, 40, 110],
    disturbances: [40, 110],
    at: (s) => ({
      load: jumps(s, [
        [0, 0.4],
        [40, 4],
        [110, 0.4],
      ]),
    }),
  },
  {
    name: 'burst',
    says: 'Five seconds of ten times the capacity, twice.',
    durationS: 120,
    phases: [0, 30, 35, 75, 80],
    disturbances: [30, 75],
    at: (s) => ({
      load: jumps(s, [
        [0, 0.5],
        [30, 10],
        [35, 0.5],
        [75, 10],
        [80, 0.5],
      ]),
    }),
  },
  {
    name: 'ramp',
    says: 'Load grows from a third to twice the capacity over two minutes, and back.',
    durationS: 300,
    phases: [0, 60, 150, 240],
    disturbances: [],
    at: (s) => ({
      load: lines(s, [
        [0, 0.33],
        [30, 0.33],
        [150, 2],
        [270, 0.33],
      ]),
    }),
  },
  {
    name: 'half-the-replicas',
    says: 'Half of the service is gone for two minutes.',
    durationS: 240,
    phases: [0, 50, 170],
    disturbances: [50, 170],
    at: (s) => {
      return {
        load: 0.85,
        replicas: jumps(s, [
          [0, 1],
          [50, 0.5],
          [170, 1],
        ]),
      };
    },
  },
  {
    name: 'slow-database',
    says: 'The database becomes three times slower over 20 s, for two minutes.',
    durationS: 240,
    phases: [0, 50, 70, 180],
    disturbances: [70, 180],
    at: (s) => ({
      load: 0.75,
      databaseSpeed: lines(s, [
        [0, 1],
        [50, 1],
        [70, 0.33],
        [180, 0.33],
        [180.1, 1],
      ]),
    }),
  },
  {
    name: 'upstream-outage',
    says: 'Every call upstream fails for a minute.',
    durationS: 180,
    phases: [0, 50, 110],
    disturbances: [110],
    outages: [[50, 110]],
    at: (s) => ({
      load: 0.7,
      failRatio: jumps(s, [
        [0, 0],
        [50, 1],
        [110, 0],
      ]),
    }),
  },
  {
    name: 'upstream-errors',
    says: 'Three in ten calls upstream fail for a minute: throttling would only lose the other seven.',
    durationS: 150,
    phases: [0, 40, 100],
    disturbances: [],
    outages: [],
    at: (s) => ({
      load: 0.7,
      failRatio: jumps(s, [
        [0, 0],
        [40, 0.3],
        [100, 0],
      ]),
    }),
  },
  {
    name: 'retry-storm',
    says: 'A dip of 15 s to a third of the speed, with clients that retry at once: without control it stays down.',
    durationS: 180,
    phases: [0, 40, 55, 70],
    disturbances: [40, 55],
    clients: { retries: 3, backoffMs: 50, timeoutMs: 1000 },
    at: (s) => {
      const speed = jumps(s, [
        [0, 1],
        [40, 0.33],
        [55, 1],
      ]);
      return { load: 0.75, speed, databaseSpeed: speed };
    },
  },
  {
    name: 'day',
    says: 'A day in ten minutes: from a third to 1.3 times the capacity and back.',
    durationS: 600,
    phases: [0, 150, 450],
    disturbances: [],
    at: (s) => ({ load: 0.8 + 0.5 * Math.sin((2 * Math.PI * s) / 600 - Math.PI / 2) }),
  },
  {
    name: 'scale-out',
    says: 'Overloaded at 1.8 times the capacity; after a minute the replicas double.',
    durationS: 240,
    phases: [0, 90],
    disturbances: [90],
    at: (s) => {
      return {
        load: 1.8,
        replicas: jumps(s, [
          [0, 1],
          [90, 2],
        ]),
      };
    },
  },
  {
    name: 'night',
    says: 'Hardly a request for minutes, then a morning step to seven tenths.',
    durationS: 300,
    phases: [0, 200],
    disturbances: [200],
    at: (s) => ({
      load: jumps(s, [
        [0, 0.01],
        [200, 0.7],
      ]),
    }),
  },
  {
    name: 'blind',
    says: 'Telemetry is missing for 40 s, in which the load doubles.',
    durationS: 180,
    phases: [0, 60, 100],
    disturbances: [100],
    at: (s) => ({
      load: jumps(s, [
        [0, 0.7],
        [70, 1.4],
        [130, 0.7],
      ]),
      blind: s >= 60 && s < 100,
    }),
  },
] as const satisfies readonly Scenario[];

export type ScenarioName = (typeof LIST)[number]['name'];

export const SCENARIOS: readonly (Scenario & { name: ScenarioName })[] = LIST;
