/**
 * What Redis gave this process, by the replies themselves: for each, Redis's own time of the decision. It watches the
 * SDK's own client, so that a decision of the SDK can be held against what it was told. Each is written down at once:
 * who is killed leaves all that was heard.
 */
import { appendFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { readInForce, readTakeReply } from '../../dist/redis/replies.js';
import { drawScript, takeScript } from '../../dist/redis/scripts.gen.js';

const clock = () => performance.timeOrigin + performance.now();
let sent = 0;

/** Writes one JSON line for each answer that gave or took back tokens, and for each call that may take some back. */
export function watchWire(file) {
  const { pid } = process;
  const write = (line) => appendFileSync(file, `${JSON.stringify({ pid, ...line })}\n`);

  function noteTake(bucket, raw) {
    const { status, nowUs, inForce, answers } = readTakeReply(raw);
    const tokens = answers.filter(({ reason }) => reason === 'ok').length;
    if (status !== 'ok' || tokens === 0) return;
    write({ bucket, atUs: nowUs, tokens, rate: inForce.rate, drawn: false, heardMs: clock() });
  }

  function noteDraw(bucket, call, [epoch, total], raw) {
    const [status, nowUs, text, given = 0] = raw;
    const inForce = status === 0 ? readInForce(text) : null;
    // Of another epoch nothing is taken back.
    const back = inForce?.epoch === Number(epoch) ? backOf(total) : 0;
    const { rate } = inForce ?? { rate: 0 };
    write({ bucket, atUs: nowUs, tokens: given, rate, drawn: true, back, call, heardMs: clock() });
  }

  const send = Redis.prototype.sendCommand;
  Redis.prototype.sendCommand = function watched(command, stream) {
    const reply = send.call(this, command, stream);
    if (command.name !== 'evalsha' && command.name !== 'eval') return reply;
    // Bytes made beforehand hold what `args` does not tell.
    const bytes = command.toWritable(this).toString('latin1');
    const parts = bytes.split('\r\n').filter((_part, i) => i > 0 && i % 2 === 0);
    const [, script, count, ...rest] = parts;
    const is = ({ sha, lua }) => script === sha || command.args[0] === lua;
    if (is(takeScript)) {
      command.promise.then(
        (raw) => noteTake(rest[1], raw),
        () => {},
      );
    }
    if (is(drawScript)) {
      const call = sent++;
      const args = rest.slice(Number(count) + 1);
      // Redis may take them back though its reply is never heard.
      const back = backOf(args[1]);
      if (back > 0) write({ bucket: rest[1], call, maybeBack: back, heardMs: clock() });
      command.promise.then(
        (raw) => noteDraw(rest[1], call, args, raw),
        // An error that Redis answered with says that nothing was done.
        ({ name }) => name === 'ReplyError' && write({ bucket: rest[1], call, heardMs: clock() }),
      );
    }
    return reply;
  };
}

const backOf = (draw) => Number(draw.split(' ')[1]);
