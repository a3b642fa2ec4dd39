/** Signatures of an export by Ed25519: the exporter holds the private key, whoever verifies needs the public one alone. Stage: audit. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto';
import { canonicalJson } from '../actuate/entry.js';
import { FlyballError } from '../errors.js';

/** What can be signed: a plain object; `key` says by which key, `sig` is the signature of all the rest. */
export interface Signable {
  key?: string;
  sig?: string;
}

export interface Signer {
  /** First 16 hex digits of the SHA-256 of the public key. */
  readonly key: string;
  sign<T extends Signable>(line: T): T;
}

/** - `other`: by a key that is not among those given. - `wrong`: by none, though it says so. */
export type Signed = 'signed' | 'unsigned' | 'other' | 'wrong';

export interface Verifier {
  check(line: Signable): Signed;
}

/** @param from where the key was read, for the error */
export function createSigner(pem: string, from: string): Signer {
  const secret = readKey(pem, from, createPrivateKey, 'private');
  const key = keyId(createPublicKey(secret));
  return {
    key,
    sign(line) {
      const named = { ...line, key };
      return { ...named, sig: signBytes(null, bytesOf(named), secret).toString('base64') };
    },
  };
}

/** Of one key or more: after a change of keys old lines are still signed by the old one. */
export function createVerifier(keys: readonly { pem: string; from: string }[]): Verifier {
  const known = new Map<string, KeyObject>();
  for (const { pem, from } of keys) {
    const key = readKey(pem, from, createPublicKey, 'public');
    known.set(keyId(key), key);
  }
  return {
    check(line) {
      const { sig, ...rest } = line;
      if (sig === undefined || line.key === undefined) return 'unsigned';
      const key = known.get(line.key);
      if (key === undefined) return 'other';
      return verifyBytes(null, bytesOf(rest), key, Buffer.from(sig, 'base64')) ? 'signed' : 'wrong';
    },
  };
}

function bytesOf(line: Signable): Buffer {
  return Buffer.from(canonicalJson(line), 'utf8');
}

function keyId(key: KeyObject): string {
  const der = key.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(der).digest('hex').slice(0, 16);
}

function readKey(
  pem: string,
  from: string,
  read: (pem: string) => KeyObject,
  what: string,
): KeyObject {
  let key: KeyObject;
  try {
    key = read(pem);
  } catch {
    throw notAKey(`${from} holds no ${what} key in PEM form`);
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw notAKey(`the key in ${from} is of type ${key.asymmetricKeyType}, not ed25519`);
  }
  return key;
}

function notAKey(fault: string): FlyballError {
  return new FlyballError(
    'FLYBALL_E_AUDIT_KEY',
    `${fault}. Make one: openssl genpkey -algorithm ed25519 -out audit.key; its public half: openssl pkey -in audit.key -pubout -out audit.pub`,
  );
}
