/** What a decision's sentence says, as numbers: for who counts and compares. Stage: decide, guard → audit. */

/** The worst reading of an objective beside its setpoint. */
export interface Over {
  signal: string;
  /** With its unit: `612 ms`. */
  value: string;
  setpoint: string;
  /** How many times the setpoint. */
  ratio: number;
}

/** What guards kept of a proposal: who, and what it would be without them, of what they moved. */
export interface KeptBack {
  guards: string[];
  rate?: number | undefined;
  inFlightMax?: number | undefined;
}
