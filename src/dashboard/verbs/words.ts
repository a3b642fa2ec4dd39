/** What a verb refuses is said for a terminal; beside a form its flags are called as its fields are. Pure. Stage: dashboard. */

const FIELDS: Record<string, string> = {
  '--rate': 'the rate',
  '--in-flight': 'the cap',
  '--rate-min': 'the least rate',
  '--rate-max': 'the most of the rate',
  '--in-flight-min': 'the least cap',
  '--in-flight-max': 'the most of the cap',
  '--clear': 'the end of those that hold',
  '--anyway --reason "…"': 'the box above, and a reason',
};
/** A command to copy, or a flag alone. */
const SAID = /(flyball [a-z]+(?: [^\s,;]+)*)|(--anyway --reason "…"|--[a-z-]+)/g;

/** Commands stay as they are. */
export function formWords(text: string): string {
  return text.replace(SAID, (all, command: string | undefined, flag: string | undefined) =>
    command === undefined ? (FIELDS[flag ?? ''] ?? all) : command,
  );
}
