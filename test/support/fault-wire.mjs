/**
 * What Redis gave this process, by the replies themselves: for each, Redis's own time of the decision. It watches the
 * SDK's own client, so that a decision of the SDK can be held against what it was told.
 */
import { Redis } from 'ioredis';
import { readInForce, readTakeReply } from '../../dist/redis/replies.js';
import { drawScript, takeScript } from '../../dist/redis/scripts.gen.js';

/** By the bucket's key: `[Redis time in µs, tokens given, rate in force, drawn (1) or taken (0), ms on this clock]`. */
const heard = new Map();
const clock = () => performance.timeOrigin + performance.now();

/** What came since it was last asked for. */
export function givenOf(bucket) {
  const rows = heard.get(bucket) ?? [];
  heard.delete(bucket);
  return rows;
}

function note(bucket, atUs, tokens, rate, drawn) {
  if (tokens === 0) return;
  const rows = heard.get(bucket) ?? [];
  rows.push([atUs, tokens, rate, drawn, clock()]);
  heard.set(bucket, rows);
}

function noteTake(bucket, raw) {
  const { status, nowUs, inForce, answers } = readTakeReply(raw);
  if (status !== 'ok') return;
  note(bucket, nowUs, answers.filter(({ reason }) => reason === 'ok').length, inForce.rate, 0);
}

function noteDraw(bucket, [epoch, total], raw) {
  const [status, nowUs, text, given] = raw;
  if (status !== 0) return;
  const inForce = readInForce(text);
  // Of another epoch nothing is taken back.
  const back = inForce.epoch === Number(epoch) ? Number(total.split(' ')[1]) : 0;
  note(bucket, nowUs, given, inForce.rate, 1);
  note(bucket, nowUs, -back, inForce.rate, 1);
}

const send = Redis.prototype.sendCommand;
Redis.prototype.sendCommand = function watched(command, stream) {
  const sent = send.call(this, command, stream);
  if (command.name !== 'evalsha' && command.name !== 'eval') return sent;
  // Bytes made beforehand hold what `args` does not tell.
  const bytes = command.toWritable(this).toString('latin1');
  const [, script, count, ...rest] = bytes.split('\r\n').filter((_part, i) => i > 0 && i % 2 === 0);
  const is = ({ sha, lua }) => script === sha || command.args[0] === lua;
  const read = (act) => void command.promise.then(act, () => {});
  if (is(takeScript)) read((raw) => noteTake(rest[1], raw));
  if (is(drawScript)) read((raw) => noteDraw(rest[1], rest.slice(Number(count) + 1), raw));
  return sent;
};
