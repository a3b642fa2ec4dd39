/** A policy's destination with its secrets taken from the environment, or what is wrong with it. Stage: report. */
import { unescaped } from '../../login.js';
import type { Destination } from '../../policy/notify-schema.js';
import { resolved } from '../../sense/source.js';
import type { Target } from './templates.js';

export type Resolved =
  | { target: Target /** Shown in its place: never a secret. */; name: string; secrets: string[] }
  | { fault: string; name: string };

type Ref = string | { env: string };

/** The name is the kind and the variable its address is in: `slack (SLACK_URL)`. */
export function resolveTarget(destination: Destination, env: NodeJS.ProcessEnv): Resolved {
  const name = nameOf(destination);
  const secrets: string[] = [];
  let fault: string | undefined;
  const take = (ref: Ref | undefined): string | undefined => {
    if (ref === undefined) return undefined;
    const found = resolved(ref, env);
    if (typeof found !== 'string') {
      fault ??= found.detail;
      return undefined;
    }
    const value = found.trim();
    // Only what the policy itself says may be shown.
    if (typeof ref !== 'string') secrets.push(...partsOf(value));
    return value;
  };
  const target: Target = { to: destination.to, url: '' };
  switch (destination.to) {
    case 'email':
      target.url = take(destination.smtp) ?? '';
      target.from = destination.from;
      target.recipients = destination.recipients;
      break;
    case 'pagerduty':
      target.url = take(destination.url) ?? '';
      put('token', take(destination.routingKey));
      break;
    case 'alertmanager':
      target.url = take(destination.url) ?? '';
      put('token', take(destination.token));
      break;
    case 'webhook':
    case 'feishu':
    case 'dingtalk':
      target.url = take(destination.url) ?? '';
      put('secret', take(destination.secret));
      break;
    default:
      target.url = take(destination.url) ?? '';
  }
  function put(field: 'token' | 'secret', value: string | undefined): void {
    if (value !== undefined) target[field] = value;
  }
  fault ??= addressFault(destination, target.url);
  return fault === undefined ? { target, name, secrets } : { fault, name };
}

/** Shorter ones would be hidden in every word. */
const SHORTEST_PART = 6;

/** A secret, and of an address all by which it can be known: servers like to repeat the path that they do not know. */
function partsOf(secret: string): string[] {
  const parts = [secret];
  if (URL.canParse(secret)) {
    const { pathname, search, searchParams, password } = new URL(secret);
    parts.push(`${pathname}${search}`, pathname, ...pathname.split('/'), ...searchParams.values());
    parts.push(password, unescaped(password));
  }
  const shown = new Set(parts.filter((part) => part === secret || part.length >= SHORTEST_PART));
  // The longest first: none is cut in two by another.
  return [...shown].sort((a, b) => b.length - a.length);
}

/** The same for each of a policy's destinations that reaches the same people. */
export function addressOf({ on: _on, perMinute: _most, ...address }: Destination): string {
  return JSON.stringify(address);
}

/** The address is not repeated: it may be a secret. */
function addressFault(destination: Destination, url: string): string | undefined {
  if (destination.to === 'pagerduty' && url === '') return undefined;
  const mail = destination.to === 'email';
  const form = mail ? /^smtps?:\/\/[^/\s]+/ : /^https?:\/\/[^/\s]+/;
  if (form.test(url) && URL.canParse(url)) return undefined;
  return `its address is none of the form ${mail ? 'smtp://user:password@host:587' : 'https://host/path'}`;
}

export function nameOf(destination: Destination): string {
  const ref: Ref | undefined =
    destination.to === 'email'
      ? destination.smtp
      : destination.to === 'pagerduty'
        ? destination.routingKey
        : destination.url;
  const where =
    typeof ref === 'string' ? (URL.canParse(ref) ? new URL(ref).host : 'address') : ref.env;
  return `${destination.to} (${where})`;
}
