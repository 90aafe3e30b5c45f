/** An operator who has all of a selection processed again. */
import type { Connection } from "../../src/db/connect.ts";
import type { Selection } from "../../src/inbox/selection.ts";
import { requeueEvents } from "../../src/operate/actions.ts";

const BY = { operator: "Ada", via: "cli", why: "to see" } as const;
const TIMEOUTS = { lockTimeoutMs: 3_000, statementTimeoutMs: 5_000 };

/** @returns how many. */
export async function requeueAll(db: Connection, selection: Selection): Promise<number> {
  return (await requeueEvents(db, selection, 1_000, BY, TIMEOUTS)).affected;
}
