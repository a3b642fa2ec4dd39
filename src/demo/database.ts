/** The checkout database: its tables, how slow it is, and which of its sessions wait. Stage: demo. */
import pg from 'pg';

/** Some dozens of rows: buyers of one item wait for each other on its row lock. */
export const ITEMS = 64;

/**
 * Time is waiting inside the server (`pg_sleep`) and row locks, never CPU. `speed.slowdown` multiplies each wait,
 * so that "half speed" is a property of the database and not of the service.
 */
const SCHEMA = `
  create table item (id int primary key, stock bigint not null);
  insert into item select n, 1000000000 from generate_series(1, ${ITEMS}) n;
  create table speed (slowdown float8 not null);
  insert into speed values (1);
  create function price(ms float8) returns void language sql volatile
    as 'select pg_sleep(ms * slowdown / 1000) from speed';
  create function take_from_stock(wanted int, ms float8) returns bigint language plpgsql as $$
    begin
      perform stock from item where id = wanted for update;
      perform price(ms);
      update item set stock = stock - 1 where id = wanted;
      return wanted;
    end $$;
`;

export interface CheckoutDatabase {
  setSlowdown(factor: number): Promise<void>;
  /** Sessions of the service that wait for a lock now. */
  waitingSessions(): Promise<number>;
  /** Ends every session but its own, and waits until none is left: what a play left behind does not reach the next. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export async function openCheckoutDatabase(url: string): Promise<CheckoutDatabase> {
  const client = new pg.Client({ connectionString: url, application_name: 'flyball-demo' });
  client.on('error', () => {});
  await client.connect();
  await client.query(SCHEMA);
  return {
    async setSlowdown(factor) {
      await client.query('update speed set slowdown = $1', [factor]);
    },
    async waitingSessions() {
      const { rows } = await client.query(
        `select count(*)::int as n from pg_stat_activity
          where wait_event_type in ('Lock', 'LWLock') and application_name = 'checkout'`,
      );
      return (rows[0] as { n: number }).n;
    },
    async settle() {
      await client.query('update speed set slowdown = 1');
      for (let left = 1; left > 0; ) {
        const { rows } = await client.query(
          `select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
            where application_name = 'checkout' and pid <> pg_backend_pid()`,
        );
        left = (rows[0] as { n: number }).n;
        if (left > 0) await new Promise((ok) => setTimeout(ok, 50));
      }
    },
    close: () => client.end(),
  };
}
