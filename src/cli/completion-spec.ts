/** What a shell may complete, taken from the commander program: commands, options, and what each argument is. Stage: cli. */
import type { Argument, Command, Option } from 'commander';

/** What stands in an argument or a value. */
export type Kind = 'limiter' | 'file' | 'none' | readonly string[];

export interface OptionSpec {
  /** `--dry-run`, and `-n` where it has one. */
  long: string;
  short?: string | undefined;
  description: string;
  /** What its value is; undefined: it takes none. */
  value?: Kind;
}

export interface CommandSpec {
  /** `audit verify`; empty for the program itself. */
  path: string;
  name: string;
  description: string;
  options: OptionSpec[];
  commands: CommandSpec[];
  arguments: { kind: Kind; variadic: boolean }[];
}

/** Hidden commands are left out; the program's own options go with every command. */
export function specOf(program: Command): CommandSpec {
  const everywhere = [
    ...program.options.map(optionSpec),
    { long: '--help', short: '-h', description: 'display help for command' },
  ];
  return commandSpec(program, '', everywhere);
}

/** The spec and all below it. */
export function allOf(spec: CommandSpec): CommandSpec[] {
  return [spec, ...spec.commands.flatMap(allOf)];
}

function commandSpec(command: Command, path: string, everywhere: OptionSpec[]): CommandSpec {
  const own = path === '' ? [] : command.options.filter(({ hidden }) => !hidden).map(optionSpec);
  return {
    path,
    name: command.name(),
    description: command.description(),
    options: [...own, ...everywhere],
    commands: command.commands
      // Commander keeps it as a field without a type.
      .filter((child) => !child.name().startsWith('__'))
      .map((child) => commandSpec(child, `${path} ${child.name()}`.trim(), everywhere)),
    arguments: command.registeredArguments.map((argument) => ({
      kind: argumentKind(argument),
      variadic: argument.variadic,
    })),
  };
}

function optionSpec(option: Option): OptionSpec {
  const { long, short, description, flags, argChoices } = option;
  const takes = option.required || option.optional;
  const value = argChoices ?? (/file|folder|<dir>|path/.test(flags) ? 'file' : 'none');
  return { long: long ?? flags, short, description, ...(takes ? { value } : {}) };
}

function argumentKind(argument: Argument): Kind {
  if (argument.argChoices !== undefined) return argument.argChoices;
  const name = argument.name();
  if (/^limiters?$/.test(name)) return 'limiter';
  return /^(policy|policies|file|files|folder|plan|plan-or-policies)$/.test(name) ? 'file' : 'none';
}
