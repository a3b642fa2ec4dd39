/**
 * The service that the demo overloads: a checkout over PostgreSQL with a pool of 10, and a payment upstream.
 * GUARD=none runs it bare, GUARD=cap behind a fixed in-flight cap, GUARD=flyball as a user would. Stage: demo.
 */
import Fastify from 'fastify';
import pg from 'pg';
import { ITEMS } from './database.js';
import { type GuardKind, guardService, type Report } from './service-guard.js';
import { createServiceProbe } from './service-probe.js';

const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  application_name: 'checkout',
  max: 10,
});
pool.on('error', () => {});
const upstream = process.env.PAYMENT_URL;

const app = Fastify({ keepAliveTimeout: 60_000 });
const kind = (process.env.GUARD ?? 'none') as GuardKind;
const probe = createServiceProbe(() => pool.waitingCount);
if (kind === 'flyball') probe.beforeDecision(app);
const guard = await guardService(app, kind, () => pool.waitingCount);
if (kind === 'flyball') probe.afterDecision(app);

app.post<{ Params: { order: string } }>('/checkout/:order', async (request, reply) => {
  const order = Number(request.params.order);
  const report = guard.reportOf(request);
  await reserve(order, report);
  const paid = await pay(order, report);
  return reply.code(paid ? 200 : 500).send({ order, paid });
});

/** About 100 ms of a connection: price it, lock the item's row, take one from stock. */
async function reserve(order: number, report: Report): Promise<void> {
  const asked = performance.now();
  const db = await pool.connect();
  report.dbWait(performance.now() - asked);
  const item = (order % ITEMS) + 1;
  const weight = workWeight(order);
  try {
    await db.query('begin');
    await db.query('select price($1)', [60 * weight]);
    await db.query('select take_from_stock($1, $2)', [item, 36 * weight]);
    await db.query('commit');
    db.release();
  } catch (error) {
    db.release(true);
    throw error;
  }
}

/** 0.6 … 1.4 by the order's number: orders differ, and both plays have the same ones. */
function workWeight(order: number): number {
  return 0.6 + 0.8 * ((Math.imul(order, 0x9e3779b1) >>> 0) / 4_294_967_296);
}

async function pay(order: number, report: Report): Promise<boolean> {
  const answer = await fetch(`${upstream}/charge/${order}`, { method: 'POST' });
  const body = (await answer.json()) as { code?: string };
  report.upstream(body.code);
  return answer.ok;
}

process.on('SIGTERM', async () => {
  await guard.close();
  process.exit(0);
});
process.on('disconnect', () => process.exit(0));

const url = await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.({ type: 'ready', url });
