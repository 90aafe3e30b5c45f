/**
 * How long the operator's pages take at the server: asked for over loopback of the real Worker in
 * workerd, whose connection to Postgres is opened for each. Pages take turns.
 */
import type { Client } from "pg";
import { bundle, startWorkerd } from "../proof/stage/workerd.ts";
import { median, printTable } from "./figures.ts";

const RUNS = 7;
/** As `openssl rand -base64 32` writes one. */
const OPS_TOKEN = "Zm9yIG9uZSBiZW5jaG1hcmsgYW5kIG5vIG90aGVyIG9uZQ==";

export async function measurePages(databaseUrl: string, client: Client): Promise<void> {
  const pages = await pathsOf(client);
  const url = new URL(databaseUrl);
  // Miniflare insists on a password, also where Postgres asks for none.
  url.password ||= "none";
  const vars = { OPS_TOKEN, STRIPE_LIVEMODE: "false" };
  const script = await bundle("src/index.ts");
  const workerd = await startWorkerd([{ name: "pages", script, databaseUrl: url.href, vars }]);
  try {
    const here = await workerd.url("pages");
    const measured = pages.map(({ what, path }) => ({ what, path, ms: Array<number>(), bytes: 0 }));
    for (let run = 0; run <= RUNS; run++) {
      for (const page of measured) {
        const startedAt = performance.now();
        const answer = await fetch(new URL(page.path, here), {
          headers: { authorization: `Bearer ${OPS_TOKEN}` },
        });
        page.bytes = (await answer.arrayBuffer()).byteLength;
        if (!answer.ok) throw new Error(`${page.path} was answered with ${answer.status}`);
        // The first one compiles.
        if (run > 0) page.ms.push(performance.now() - startedAt);
      }
    }
    printTable(
      ["page, in ms", "median", "worst", "kB"],
      measured.map(({ what, ms, bytes }) => [
        what,
        median(ms).toFixed(0),
        Math.max(...ms).toFixed(0),
        (bytes / 1_000).toFixed(0),
      ]),
    );
  } finally {
    await workerd.stop();
  }
}

async function pathsOf(client: Client): Promise<readonly { what: string; path: string }[]> {
  const { rows } = await client.query<Record<"event" | "object" | "customer", string>>(
    `select (select event_id from webhook_inbox where endpoint = 'billing'
         and event_type = 'invoice.paid' order by received_at desc limit 1) as event,
       bench.invoice(rows * 19 / 200) as object, bench.customer(rows * 19 / 200) as customer
     from bench.plan`,
  );
  const [{ event, object, customer } = { event: "", object: "", customer: "" }] = rows;
  const paths = {
    overview: "/ops",
    events: "/ops/events",
    "events: waiting, the oldest first": "/ops/events?state=waiting&order=oldest",
    "events: need review": "/ops/events?state=needs_review",
    "events: a type, processed": "/ops/events?type=invoice.paid&state=processed",
    "events: of an invoice": `/ops/events?object_id=${object}`,
    "events: of a customer": `/ops/events?customer_id=${customer}`,
    "one event": `/ops/event?endpoint=billing&event_id=${event}`,
    "needs review": "/ops/review",
    ignored: "/ops/ignored",
    discrepancies: "/ops/discrepancies",
    "outbox: need review": "/ops/outbox",
    "outbox: waiting": "/ops/outbox?state=waiting",
    "outbox: left, not done": "/ops/outbox?state=not_done",
    "outbox: done": "/ops/outbox?state=done",
    missed: "/ops/gaps",
    actions: "/ops/actions",
    "requeue all of a reason?": "/ops/events/requeue?reason=TypeError",
    "requeue what was ignored?": "/ops/events/requeue?ignored_reason=livemode",
    "send messages again?": "/ops/messages/requeue?reason=Uncertain",
    "resolve all of a kind?": "/ops/discrepancies/resolve?kind=void_after_paid",
    doctor: "/ops/doctor",
  };
  return Object.entries(paths).map(([what, path]) => ({ what, path }));
}
