/**
 * An inbox as 90 days of steady traffic and the shipped retention leave it: payloads of the last 30
 * days, tombstones before. Of the last 3 days, three in ten events are parked and three in ten wait,
 * as after trouble that lasts.
 *
 * Rows are in the order of time, and the newest are not vacuumed: in a table that only grows,
 * autovacuum comes late.
 */
import type { Client } from "pg";
import { say } from "./bench.ts";
import { KINDS } from "./event-kinds.ts";
import { fillOtherTables } from "./many-rows.ts";
import { AMOUNT, paidEvent } from "./waiting-events.ts";

const DAYS = 90;
const CHUNK = 250_000;
/** What of the end of the table no vacuum has seen. */
const UNVACUUMED_DAYS = 2;
/** A filled database is kept up to date for so long back: more is not looked at as recent. */
const RECENT_HOURS = 4;

/** Fills an empty, migrated database with `rows` events up to now, and with what goes with them. */
export async function fillWithMany(client: Client, rows: number): Promise<void> {
  await client.query("set work_mem = '256MB'; set maintenance_work_mem = '1GB'");
  await plan(client, rows);
  await fillOtherTables(client, rows);
  const vacuumed = Math.floor(rows * (1 - UNVACUUMED_DAYS / DAYS));
  await withoutIndexes(client, () => insert(client, 1, vacuumed));
  say("vacuum");
  await client.query("vacuum (analyze)");
  await insert(client, vacuumed + 1, rows);
  await client.query("analyze webhook_inbox");
}

/** To a database that was filled before: the events received since, at the same rate. */
export async function catchUp(client: Client): Promise<void> {
  const { rows } = await client.query<{ from: string; to: string }>(
    `with now as (
       select done, rows + floor(extract(epoch from now() - until) / seconds) as last,
         floor($1::int * 3600 / seconds) as recent from bench.plan)
     select greatest(done, last - recent) + 1 as from, last as to from now`,
    [RECENT_HOURS],
  );
  const [due] = rows;
  if (due) await insert(client, Number(due.from), Number(due.to));
  await client.query("analyze webhook_inbox");
}

/** The id of the `n`th event, invoice (a tenth of the events), and customer (of five invoices). */
async function plan(client: Client, rows: number): Promise<void> {
  await client.query(`create schema bench;
    create table bench.plan as select ${rows}::bigint as rows, now() as until,
      ${(DAYS * 86_400) / rows}::float8 as seconds, 0::bigint as done;
    create table bench.kinds (slot int primary key, endpoint text, event_type text, reason text);
    create function bench.id(prefix text, n bigint) returns text immutable language sql
      return prefix || '_1' || lpad(n::text, 9, '0') || left(md5(n::text), 14);
    create function bench.invoice(n bigint) returns text immutable language sql
      return bench.id('in', n);
    create function bench.customer(invoice bigint) returns text immutable language sql
      return 'cus_' || left(md5((invoice % ${Math.ceil(rows / 50)})::text), 14)`);
  await client.query(
    `insert into bench.kinds
     select row_number() over () - 1, kind->>'endpoint', kind->>'type', kind->>'reason'
     from jsonb_array_elements($1::jsonb) kind
     cross join lateral generate_series(1, (kind->>'share')::int)`,
    [JSON.stringify(KINDS)],
  );
  await client.query("analyze bench.kinds");
}

async function insert(client: Client, from: number, to: number): Promise<void> {
  for (let first = from; first <= to; first += CHUNK) {
    const last = Math.min(first + CHUNK - 1, to);
    await client.query(INSERT, [first, last, JSON.stringify(paidEvent("evt_@", AMOUNT))]);
    await client.query("update bench.plan set done = $1", [last]);
    say(`${last.toLocaleString("en")} events`);
  }
}

const INSERT = `
  insert into webhook_inbox (endpoint, event_id, event_type, object_id, payload, received_at,
    available_at, attempts, fence, last_error, processed_at, outcome, ignored_reason, parked_at,
    duplicates)
  select kinds.endpoint, evt, event_type, object,
    case when received > until - interval '30 days' then
      replace(replace(replace(replace(replace($3::text, 'evt_@', evt), 'in_@', object),
        'cus_@', bench.customer(invoice)), '"invoice.paid"', to_json(event_type)::text),
        '@', n::text)::jsonb end,
    received, received + case when fate = 'failed' then luck * interval '10 minutes' else '0' end,
    case fate when 'waiting' then 0 when 'failed' then 1 + floor(luck * 6) when 'parked' then 8
      else 1 end,
    case fate when 'waiting' then 0 when 'failed' then 2 when 'parked' then 9 else 1 end,
    case fate
      when 'parked' then (array['TypeError', 'PermanentError:amount_paid_unusable', '23514',
        'Crashed', '22P02'])[1 + floor(luck * luck * 5)]
      when 'failed' then (array['57014', 'RangeError', '40P01'])[1 + floor(luck * 3)] end,
    case when fate = 'settled' then received + seconds * interval '1 second' end,
    case when fate = 'settled' then case when reason is null then 'processed' else 'ignored' end end,
    case when fate = 'settled' then reason end,
    case when fate = 'parked' then least(until, received + luck * interval '1 hour') end,
    case when luck < 0.003 then 2 when luck < 0.03 then 1 else 0 end
  from (
    select n, until, until + (n - rows) * seconds * interval '1 second' as received,
      floor(random() * 10000)::int as slot, random() as luck, random() as chance,
      greatest(1, ceil(n / 10.0) - floor(random() * 50))::bigint as invoice,
      case when random() < 0.97 then random() * 1.5 else random() * 300 end as seconds
    from generate_series($1::bigint, $2::bigint) n cross join bench.plan) as drawn
  join bench.kinds using (slot)
  cross join lateral (
    select bench.id('evt', n) as evt, case when event_type like 'invoice.%'
      then bench.invoice(invoice) else bench.id('obj', n) end as object,
      case when received < until - interval '3 days' or chance > 0.6 then 'settled'
        when chance < 0.3 then 'parked' when chance < 0.35 then 'failed' else 'waiting' end as fate
  ) as made
  on conflict do nothing`;

/** Many times faster than to keep them while rows come. The primary key stays. */
async function withoutIndexes(client: Client, fill: () => Promise<void>): Promise<void> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
     from pg_index where indrelid = 'webhook_inbox'::regclass and not indisprimary`,
  );
  for (const { name } of rows) await client.query(`drop index ${name}`);
  await fill();
  for (const { name, definition } of rows) {
    say(`index ${name}`);
    await client.query(definition);
  }
}
