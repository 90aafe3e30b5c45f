/** The Worker's own code on one connection, from Node: what it sends is what the Worker sends. */
import { readSettings, type Settings } from "../../../src/config.ts";
import { connect, type Connection } from "../../../src/db/connect.ts";
import { inOneFlight } from "../../../src/db/transaction.ts";
import { endpoints, rulesOf } from "../../../src/endpoints.ts";
import { claimDue } from "../../../src/inbox/claim.ts";
import { receiveSync } from "../../../src/inbox/receive.ts";
import { type Claim, mark } from "../../../src/inbox/transitions.ts";
import { eventFromApi } from "../../../src/stripe/verify.ts";
import { AMOUNT, paidEvent } from "../waiting-events.ts";

export interface Driven {
  readonly db: Connection;
  readonly settings: Settings;
  /** At most so many fresh events, under the shipped lease. */
  readonly claim: (limit: number) => Promise<readonly Claim[]>;
  /** An `invoice.paid` that was never seen, booked by the shipped handlers. */
  readonly receive: (eventId: string) => Promise<void>;
  /** Claimed events as settled: each in a transaction of its own, without a handler's writes. */
  readonly mark: (claims: readonly Claim[]) => Promise<void>;
}

/** Of a claim: many enough that its own cost is spread over them. */
export const CLAIM_BATCH = 50;

/** As the door's: no statement is given less time than it has by its setting. */
const DEADLINE_MS = 9_000;

/** On so many connections, which are closed at the end. */
export async function drive<T>(
  databaseUrl: string,
  connections: number,
  use: (driven: readonly [Driven, ...Driven[]]) => Promise<T>,
): Promise<T> {
  const settings = readSettings({
    HYPERDRIVE: { connectionString: databaseUrl },
    STRIPE_LIVEMODE: "false",
  });
  const open = (): Promise<Connection> => connect(settings.database, new AbortController().signal);
  const first = await open();
  const others = await Promise.all(Array.from({ length: connections - 1 }, open));
  try {
    return await use([on(first, settings), ...others.map((db) => on(db, settings))]);
  } finally {
    await Promise.all([first, ...others].map((db) => db.close()));
  }
}

function on(db: Connection, settings: Settings): Driven {
  const { receive: timeouts, retry, process } = settings;
  const endpoint = rulesOf("billing", endpoints["billing"] ?? missing(), settings);
  return {
    db,
    settings,
    claim: (limit) => claimDue(db, "fresh", limit, process),
    mark: async (claims) => {
      // All are sent at once, or the marks of 100,000 events would take minutes of waiting.
      const marking = claims.map((claim) => inOneFlight(db, process.timeouts, [mark(claim)]));
      const marked = await Promise.all(marking);
      const lost = marked.filter(([rows]) => rows?.length !== 1).length;
      if (lost > 0) throw new Error(`${lost} claimed events could not be marked.`);
    },
    receive: async (eventId) => {
      const event = eventFromApi(JSON.stringify(paidEvent(eventId, AMOUNT)));
      if ("invalid" in event) throw new Error(`${eventId} is no event: ${event.detail}`);
      const policy = { ...retry, timeouts, remainingMs: () => DEADLINE_MS };
      const { outcome } = await receiveSync(db, { event, endpoint }, policy);
      if (outcome !== "processed") throw new Error(`${eventId} was ${outcome}.`);
    },
  };
}

function missing(): never {
  throw new Error("There is no endpoint of that name any more.");
}
