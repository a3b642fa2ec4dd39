/** `'user:{userId}'` and a request's attributes → a subject, so that no two sets of attributes share one. Stage: enforce. */
import { FlyballTypeError } from '../errors.js';
import { show } from './arguments.js';

export type Attributes = Readonly<
  Record<string, string | number | readonly string[] | undefined | null>
>;

/** What middleware knows of a request by itself; attributes of the same names beat it. */
export interface KnownAttributes {
  /** The client's address, IPv6 by its network. */
  readonly ip: string;
  /** The pattern of the route, `/users/:id`; null: unknown. Never the raw path, of which there is no end. */
  readonly route?: string | null;
}

export interface SubjectTemplate {
  readonly source: string;
  /** Names between braces, in order; `ip` and `route` come from the middleware. */
  readonly attributes: readonly string[];
  /** The subject, or null when an attribute is missing or empty. */
  fill(attributes: Attributes, known?: KnownAttributes): string | null;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_.]*$/;

/**
 * Compile a template once. Filling is injective: with two or more attributes, `%` and the punctuation that
 * separates them are percent-encoded inside values, so `a:b`+`c` and `a`+`b:c` stay apart.
 */
export function compileSubject(source: string): SubjectTemplate {
  const literals: string[] = [];
  const names: string[] = [];
  let rest = source;
  for (;;) {
    const open = rest.indexOf('{');
    const literal = open < 0 ? rest : rest.slice(0, open);
    if (literal.includes('}')) throw fault(source, `a '}' without its '{'`);
    literals.push(literal);
    if (open < 0) break;
    const close = rest.indexOf('}', open);
    if (close < 0) throw fault(source, `a '{' without its '}'`);
    const name = rest.slice(open + 1, close);
    if (!NAME.test(name)) throw fault(source, `the name ${show(name)}`);
    names.push(name);
    rest = rest.slice(close + 1);
  }
  if (names.length === 0) throw fault(source, 'no attribute: every request would share one bucket');
  const separators = literals.slice(1, -1).map((literal) => punctuation(source, literal));
  const reserved = new Set(`%${separators.join('')}`);
  const encode = names.length > 1 ? (text: string) => escapeReserved(text, reserved) : identity;
  return {
    source,
    attributes: names,
    fill(attributes, known) {
      let subject = literals[0]!;
      for (let i = 0; i < names.length; i++) {
        const name = names[i]!;
        const value = Object.hasOwn(attributes, name) ? attributes[name] : knownOf(name, known);
        if (value === undefined || value === null) return null;
        const text = String(value);
        if (text === '') return null;
        subject += encode(text) + literals[i + 1]!;
      }
      return subject;
    },
  };
}

function knownOf(name: string, known: KnownAttributes | undefined): string | null | undefined {
  if (name === 'ip') return known?.ip;
  return name === 'route' ? known?.route : undefined;
}

/** What in the separator can never stand in a value once encoded. */
function punctuation(source: string, literal: string): string {
  const found = literal.replace(/[A-Za-z0-9%]/g, '');
  if (found === '') {
    throw fault(source, `${show(literal)} between two attributes; put a ':' or '/' there`);
  }
  return found;
}

function escapeReserved(text: string, reserved: ReadonlySet<string>): string {
  let out = '';
  for (const char of text) out += reserved.has(char) ? percent(char) : char;
  return out;
}

function percent(char: string): string {
  let out = '';
  for (const byte of Buffer.from(char, 'utf8')) {
    out += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return out;
}

const identity = (text: string) => text;

function fault(source: string, what: string): FlyballTypeError {
  return new FlyballTypeError(
    'FLYBALL_E_ENFORCE_TEMPLATE',
    `perSubject.subject is ${show(source)}, which has ${what}. Write names in braces: 'user:{userId}' or '{tenant}:{ip}'.`,
  );
}
