/** What `init` goes by: flags first, then answers at a terminal, then what was found. Stage: cli. */
import { NAME_PATTERN } from '../redis/keys.js';
import {
  type FoundDatabase,
  FRAMEWORKS,
  type Framework,
  kindOf,
  type Surroundings,
} from './init-surroundings.js';
import { type CliIo, UsageError } from './output.js';
import { clean } from './text.js';

export interface InitFlags {
  dir: string;
  rate?: number;
  inFlight?: number;
  framework?: Framework;
  database?: string;
  fit?: number;
  metrics?: string;
  metric: string;
  dryRun?: boolean;
  yes?: boolean;
}

export interface Chosen {
  name: string;
  framework: Framework;
  database: FoundDatabase | null;
  rate: number | undefined;
  inFlight: number | undefined;
}

/** Asks only at a terminal, only what no flag said, and refuses a name that is taken before more is asked. */
export async function chosenBy(
  io: CliIo,
  around: Surroundings,
  given: string | undefined,
  flags: InitFlags,
  refuseTaken: (dir: string, name: string) => void,
): Promise<Chosen> {
  const asks = io.interactive && flags.yes !== true;
  if (given === undefined && !asks && flags.yes !== true) {
    throw new UsageError(
      'the limiter has no name, and there is no terminal to ask at.',
      `Write flyball init ${around.suggested}, or add --yes to take that name.`,
    );
  }
  const found = databaseOf(around, flags.database, io.env);
  const chosen = {
    name: given ?? around.suggested,
    framework: flags.framework ?? around.framework,
    database: found,
    rate: flags.rate,
    inFlight: flags.inFlight,
  };
  if (given !== undefined) refuseTaken(flags.dir, given);
  if (!asks) return chosen;
  if (given === undefined) {
    chosen.name = await asked(io, 'Name of the limiter', around.suggested, (text) =>
      NAME_PATTERN.test(text) ? text : "1 to 64 of a-z, 0-9, '.', '_', '-'",
    );
    refuseTaken(flags.dir, chosen.name);
  }
  if (flags.framework === undefined) {
    const from = around.frameworkFrom === null ? '' : `, found in ${around.frameworkFrom}`;
    const list = FRAMEWORKS.join(', ');
    chosen.framework = (await asked(io, `Framework (${list})${from}`, around.framework, (text) =>
      FRAMEWORKS.includes(text as Framework) ? text : `one of ${list}`,
    )) as Framework;
  }
  if (flags.database === undefined && found !== null) {
    const text = `Watch ${found.kind} (${found.variable}, of ${clean(found.from)})? yes or no`;
    const answer = await asked(io, text, 'yes', yesOrNo);
    if (answer.startsWith('n')) chosen.database = null;
  }
  // What will be measured need not be guessed.
  if (flags.rate === undefined && flags.fit === undefined) {
    const text = await asked(
      io,
      'Requests per second it surely bears, all instances',
      '100',
      (text) =>
        /^\d+(\.\d+)?$/.test(text) && Number(text) >= 1 && Number(text) <= 1e5
          ? text
          : '1 … 100000',
    );
    chosen.rate = Number(text);
  }
  return chosen;
}

/** Again until it is answered well; the end of input takes the default. */
async function asked(
  io: CliIo,
  question: string,
  byDefault: string,
  read: (text: string) => string,
): Promise<string> {
  for (let tries = 0; tries < 10; tries++) {
    const answer = await io.ask(question, byDefault);
    const text = read(answer);
    if (text === answer) return answer;
    io.say(`${JSON.stringify(clean(answer))} is not allowed: ${text}.`);
  }
  throw new UsageError(`${question}: no allowed answer in ten.`, 'Give it as a flag.');
}

function yesOrNo(text: string): string {
  return /^(y|yes|n|no)$/i.test(text) ? text : 'yes or no';
}

function databaseOf(
  { database: found }: Surroundings,
  flag: string | undefined,
  env: NodeJS.ProcessEnv,
): FoundDatabase | null {
  if (flag === undefined) return found;
  if (flag === 'none') return null;
  if (!/^[A-Za-z_]\w*$/.test(flag)) {
    throw new UsageError(
      `--database ${JSON.stringify(flag.replace(/:\/\/.*/, '://…'))} is not the name of an environment variable.`,
      'An address belongs in a variable, for the policy is a file: --database DATABASE_URL.',
    );
  }
  if (flag === found?.variable) return found;
  const url = env[flag];
  const kind = kindOf(url ?? '');
  if (url !== undefined && kind !== null) {
    return { kind, variable: flag, from: 'the environment', url };
  }
  throw new UsageError(
    url === undefined
      ? `--database ${flag}: this variable is not set here, so it is not known which database it is.`
      : `--database ${flag}: its value begins with neither postgres:// nor mysql://.`,
    `Set it before, as in ${flag}=postgres://… flyball init.`,
  );
}
