/**
 * The floors: what the same effects take of Postgres alone, by pgbench at eight clients on our own
 * tables. Each claims 50 events as the Worker does, then marks and books them: in one statement per
 * event, which is its own transaction, or all 50 in one.
 *
 * Left out, so that it is a floor: discrepancies, invoices that are there already, failing events.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Contestant, Handler } from "./contestant.ts";
import { COUNT_PROCESSED, inbox } from "./ours.ts";

const CLIENTS = 8;
const BATCH = 50;
/** Longer than any slice: it is ended. */
const SECONDS = 600;

export interface Floors {
  readonly eachAlone: Contestant;
  readonly batched: Contestant;
}

/** Null where there is no pgbench. */
export function floors(): Floors | null {
  const pgbench = findPgbench();
  if (pgbench === null) return null;
  return {
    eachAlone: floor(pgbench, "floor, a transaction per event", "prepared", EACH_ALONE),
    batched: floor(pgbench, `floor, a transaction per ${BATCH} events`, "set-based", BATCHED),
  };
}

function floor(pgbench: string, name: string, handler: Handler, script: string): Contestant {
  return {
    name,
    handler,
    completion: "floor",
    backlog: inbox,
    countDone: COUNT_PROCESSED,
    run: (databaseUrl, stop) => runPgbench(pgbench, script, databaseUrl, stop),
  };
}

async function runPgbench(
  pgbench: string,
  script: string,
  databaseUrl: string,
  stop: AbortSignal,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "stripe-inbox-floor-"));
  const file = join(folder, "floor.sql");
  writeFileSync(file, script);
  const flags = { "--client": CLIENTS, "--jobs": 2, "--time": SECONDS, "--file": file };
  const args = ["--no-vacuum", ...Object.entries(flags).flat().map(String), databaseUrl];
  // Each client prepares its one statement for itself, and plans it once.
  const env = { ...process.env, PGOPTIONS: "-c plan_cache_mode=force_generic_plan" };
  try {
    await new Promise<void>((resolve, reject) => {
      execFile(pgbench, args, { env, signal: stop }, (error, _, errors) => {
        if (stop.aborted) resolve();
        else reject(new Error(`pgbench ended by itself: ${errors}`, { cause: error }));
      });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** On the PATH, or where Debian puts it: the newest. */
function findPgbench(): string | null {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const folders = [
    ...(process.env["PATH"] ?? "").split(delimiter),
    ...versions
      .toSorted((a, b) => Number(b) - Number(a))
      .map((version) => join(debian, version, "bin")),
  ];
  return folders.map((folder) => join(folder, "pgbench")).find(existsSync) ?? null;
}

/** @param selected of the claimed rows, as pgbench's variables. */
function claim(selected: string): string {
  return `
with picked as materialized (
  select provider, endpoint, event_id from webhook_inbox
  where processed_at is null and parked_at is null and available_at <= now()
    and not (attempts > 0 and last_error is null)
  order by available_at limit ${BATCH} for update skip locked
), claimed as (
  update webhook_inbox set attempts = attempts + 1, fence = fence + 1, last_error = null,
    available_at = clock_timestamp() + 120 * interval '1 second'
  from picked where (webhook_inbox.provider, webhook_inbox.endpoint, webhook_inbox.event_id)
    = (picked.provider, picked.endpoint, picked.event_id)
  returning webhook_inbox.event_id, fence
)
select ${selected} from claimed \\gset
`;
}

/** @param claimed where the rows to mark are told by, after `update webhook_inbox set …`. */
function book(claimed: string): string {
  return `
  with marked as (
    update webhook_inbox set processed_at = now(), outcome = 'processed', last_error = null,
      fence = webhook_inbox.fence + 1
    ${claimed} and provider = 'stripe' and endpoint = 'billing' and processed_at is null
      and parked_at is null
    returning webhook_inbox.event_id, payload#>'{data,object}' as object
  ), invoice as (
    insert into invoices (id, customer_id, status, currency, amount_paid, paid_at)
    select object->>'id', object->>'customer', 'paid', object->>'currency',
      (object->>'amount_paid')::bigint, now()
    from marked
    on conflict (id) do update set status = 'paid', paid_at = now(),
      amount_paid = excluded.amount_paid, updated_at = now()
    where invoices.status in ('draft', 'open', 'uncollectible')
  ), entry as (
    insert into ledger_entries (invoice_id, kind, amount, currency, event_id)
    select object->>'id', 'payment', (object->>'amount_paid')::bigint, object->>'currency', event_id
    from marked
    on conflict (invoice_id, kind) do nothing
    returning *
  )
  insert into outbox (aggregate_type, aggregate_id, event_type, payload)
  select 'Invoice', invoice_id, 'InvoicePaymentBooked',
    jsonb_build_object('invoice_id', invoice_id, 'amount', amount, 'currency', currency,
      'customer_id', object->>'customer', 'event_id', event_id)
  from entry join marked using (event_id)`;
}

/** pgbench knows no start of a session: the first transaction of a client prepares. */
function prepareOnce(statement: string): string {
  return `select count(*) = 0 as is_new from pg_prepared_statements where name = 'book' \\gset
\\if :is_new
prepare ${statement};
\\endif
`;
}

const NUMBERS = Array.from({ length: BATCH }, (_, at) => at + 1);

const EACH_ALONE = [
  prepareOnce(`book (text, bigint) as ${book("where event_id = $1 and webhook_inbox.fence = $2")}`),
  claim(
    NUMBERS.map(
      (n) =>
        `quote_literal(coalesce((array_agg(event_id))[${n}], '')) as event${n}, ` +
        `coalesce((array_agg(fence))[${n}], 0) as fence${n}`,
    ).join(",\n  "),
  ),
  ...NUMBERS.map((n) => `execute book(:event${n}, :fence${n});\n`),
].join("");

const BATCHED = [
  prepareOnce(
    `book (text[], bigint[]) as ${book(
      `from unnest($1, $2) as claimed (event_id, fence)
    where (webhook_inbox.event_id, webhook_inbox.fence) = (claimed.event_id, claimed.fence)`,
    )}`,
  ),
  claim(
    "quote_literal(coalesce(array_agg(event_id), '{}')) as events, " +
      "quote_literal(coalesce(array_agg(fence), '{}')) as fences",
  ),
  "execute book(:events, :fences);\n",
].join("");
