/** Completion scripts for bash, zsh and fish. Pure. Stage: cli. */
import { allOf, type CommandSpec, type Kind } from './completion-spec.js';
import { quoted, tables } from './completion-tables.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

const SCRIPTS: Record<Shell, (spec: CommandSpec) => string> = { bash, zsh, fish };

export function completionScript(shell: Shell, spec: CommandSpec): string {
  return SCRIPTS[shell](spec);
}

/** Names come from Redis, in the time that a person does not notice, or not at all. */
const LIMITERS = 'flyball __complete limiters --';

/** Walks the words before the cursor: which command is it, at which argument. */
function walk(words: string, first: number, cursor: string): string {
  return `  local cur prev at= position=0 skip= word i reply
  cur=\${${words}[${cursor}]}
  prev=\${${words}[${cursor}-1]}
  for ((i = ${first}; i < ${cursor}; i++)); do
    word=\${${words}[i]}
    if [[ -n $skip ]]; then skip=
    elif [[ $word == -* ]]; then
      if _flyball_takes "$at" "$word"; then skip=1; fi
    elif [[ $position == 0 ]] && _flyball_is "$at" "$word"; then at="\${at:+$at }$word"
    else position=$((position + 1)); fi
  done
  if [[ -n $skip ]]; then reply=$(_flyball_value "$at" "$prev")
  elif [[ $cur == -* ]]; then reply=$(_flyball_option "$at")
  else reply=$(_flyball_argument "$at" "$position"); fi`;
}

function bash(spec: CommandSpec): string {
  return `# Completion of flyball for bash. In ~/.bashrc: source <(flyball completion bash)
${tables(spec, (word) => word)}
_flyball() {
${walk('COMP_WORDS', 1, 'COMP_CWORD')}
  COMPREPLY=()
  if [[ $reply == *:limiters* ]]; then
    reply="\${reply/:limiters/}
$(${LIMITERS} "\${COMP_WORDS[@]}" 2>/dev/null)"
  fi
  if [[ $reply == *:files* ]]; then
    reply=\${reply/:files/}
    compopt -o default 2>/dev/null
  fi
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$reply" -- "$cur"))
}
complete -F _flyball flyball
`;
}

function zsh(spec: CommandSpec): string {
  const line = (word: string, description: string) => {
    const escaped = word.replaceAll(':', '\\:');
    return description === '' ? escaped : `${escaped}:${description}`;
  };
  return `#compdef flyball
# Completion of flyball for zsh. In ~/.zshrc, after compinit: source <(flyball completion zsh)
${tables(spec, line)}
_flyball() {
${walk('words', 2, 'CURRENT')}
  local -a lines
  if [[ $reply == *:limiters* ]]; then
    reply="\${reply/:limiters/}
$(${LIMITERS} "\${words[@]}" 2>/dev/null)"
  fi
  if [[ $reply == *:files* ]]; then
    reply=\${reply/:files/}
    _files
  fi
  lines=("\${(@f)reply}")
  lines=(\${lines:#})
  if ((\${#lines})); then _describe flyball lines; fi
}
if [[ "\${funcstack[1]}" == _flyball ]]; then _flyball "$@"; else compdef _flyball flyball; fi
`;
}

function fish(spec: CommandSpec): string {
  const lines: string[] = [];
  for (const command of allOf(spec)) {
    const words = command.path === '' ? [] : command.path.split(' ');
    const here = `__flyball_at ${[...words].join(' ')}`.trim();
    for (const { name, description } of command.commands) {
      lines.push(
        add(`${here}; and __flyball_position ${words.length} 0`, `-f -a ${name}`, description),
      );
    }
    for (const [i, { kind, variadic }] of command.arguments.entries()) {
      const position = `${words.length} ${i}${variadic ? ' more' : ''}`;
      lines.push(add(`${here}; and __flyball_position ${position}`, fishWords(kind), ''));
    }
    if (command.path === '') continue;
    for (const option of command.options) {
      const short = option.short === undefined ? '' : ` -s ${option.short.slice(1)}`;
      const value = option.value === undefined ? '' : ` -r ${fishWords(option.value)}`;
      lines.push(add(here, `-l ${option.long.slice(2)}${short}${value}`, option.description));
    }
  }
  const top = spec.options.map(({ long, short, description, value }) =>
    add(
      '__flyball_at',
      `-l ${long.slice(2)}${short === undefined ? '' : ` -s ${short.slice(1)}`}${value === undefined ? '' : ' -r'}`,
      description,
    ),
  );
  const takers = new Set(
    allOf(spec).flatMap(({ options }) =>
      options.flatMap(({ long, short, value }) =>
        value === undefined ? [] : short === undefined ? [long] : [long, short],
      ),
    ),
  );
  const commands = allOf(spec).flatMap(({ path }) => (path === '' ? [] : [quoted(path)]));
  return `# Completion of flyball for fish. In ~/.config/fish/config.fish: flyball completion fish | source
set -g __flyball_commands ${commands.join(' ')}
set -g __flyball_takers ${[...takers].join(' ')}
# The words before the cursor without options and their values.
function __flyball_words
  set -l skip 0
  for word in (commandline -opc)[2..]
    if test $skip = 1
      set skip 0
    else if string match -q -- '-*' $word
      contains -- $word $__flyball_takers; and set skip 1
    else
      echo -- $word
    end
  end
end
# Is this the command, and none below it?
function __flyball_at
  set -l words (__flyball_words)
  set -l path
  for word in $words
    if contains -- "$(string join ' ' -- $path $word)" $__flyball_commands
      set -a path $word
    else
      break
    end
  end
  test "$path" = "$argv"
end
# So many words of the command, then so many arguments; or more of them.
function __flyball_position
  set -l count (math (count (__flyball_words)) - $argv[1])
  test $count = $argv[2]; or begin
    test "$argv[3]" = more; and test $count -gt $argv[2]
  end
end
complete -c flyball -f
${[...lines, ...top].join('\n')}
`;
}

function add(when: string, what: string, description: string): string {
  const told = description === '' ? '' : ` -d ${fishQuoted(description)}`;
  return `complete -c flyball -n ${fishQuoted(when)} ${what}${told}`;
}

function fishWords(kind: Kind): string {
  if (kind === 'file') return '-F';
  if (kind === 'limiter')
    return `-f -a ${fishQuoted(`(${LIMITERS} (commandline -opc) 2>/dev/null)`)}`;
  return kind === 'none' ? '-f' : `-f -a ${fishQuoted(kind.join(' '))}`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
