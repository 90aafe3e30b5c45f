/**
 * Where a broken receiver must be found out, by reason: derived from the statements that it sends,
 * and from what Postgres had acted on when the disturbance came.
 */
import type { Run } from "../crash/crash-points.ts";
import { type Boundary, sameBoundary } from "../stage/wire.ts";

/** Whether a run must show it; null where it depends on who is faster. */
export type MustShow = (conversation: readonly Boundary[], run: Run) => boolean | null;

/** The beginnings of the statement that marks the event, and of the last one that does its work. */
const MARK = "insert into webhook_inbox";
const WORK = "insert into effects";
/** The same of the product's own, on a message's way out, and where it arrives. */
const PUBLISHED = 'update "outbox" set published_at';
const CALLED = "update \"call_journal\" set state = 'done'";

/** Marked, and the work not done. */
export const betweenMarkAndWork: MustShow = (conversation, run) =>
  hasActed(conversation, commitBehind(conversation, MARK), run) &&
  !hasActed(conversation, commitBehind(conversation, WORK), run);

/** Done, and not marked. */
export const betweenWorkAndMark: MustShow = (conversation, run) =>
  hasActed(conversation, commitBehind(conversation, WORK), run) &&
  !hasActed(conversation, commitBehind(conversation, MARK), run);

/** One of the writes whose errors nobody looks at. */
export const atAnyWrite: MustShow = (conversation, { way, boundary }) => {
  const place = placeOf(conversation, boundary);
  return (
    way === "refuse the statement" &&
    place > placeOf(conversation, asking("P", MARK)) &&
    place < commitBehind(conversation, WORK)
  );
};

/** Another delivery came while the row was locked, and then the lock's holder did not commit. */
export const whileTheRowIsLocked: MustShow = (conversation, run) => {
  const met = placeOf(conversation, run.boundary);
  const locked = placeOf(conversation, asking("E", MARK));
  if (hasActed(conversation, commitBehind(conversation, MARK), run)) return false;
  // What asks for the lock is on its way to Postgres, and so is the other delivery.
  return met === locked + 1 ? null : met > locked;
};

/** Marked as published, and the Worker gone that holds the message: nothing else ends with it. */
export const betweenMarkAndSend: MustShow = (conversation, run) =>
  run.way === "kill the Worker" &&
  hasActed(conversation, commitBehind(conversation, PUBLISHED), run);

/** Acknowledged, and not done. Who is gone has not come to tell the queue, and gets it again. */
export const beforeTheCallIsRecorded: MustShow = (conversation, run) =>
  run.way !== "kill the Worker" && !hasActed(conversation, commitBehind(conversation, CALLED), run);

/** Whether Postgres acts on the message at `place`; who asks waits for each answer. */
function hasActed(
  conversation: readonly Boundary[],
  place: number,
  { way, boundary }: Run,
): boolean {
  const disturbed = placeOf(conversation, boundary);
  if (disturbed !== place) return disturbed > place;
  return way === "cut after" || way === "kill the Worker";
}

function commitBehind(conversation: readonly Boundary[], statement: string): number {
  const from = placeOf(conversation, asking("P", statement));
  return from + placeOf(conversation.slice(from), asking("Q", "commit"));
}

const asking =
  (type: string, statement: string) =>
  (boundary: Boundary): boolean =>
    boundary.from === "client" &&
    boundary.type === type &&
    boundary.statement.startsWith(statement);

/** Counts from 0, over both sides. */
export function placeOf(
  conversation: readonly Boundary[],
  which: Boundary | ((boundary: Boundary) => boolean),
): number {
  const found = conversation.findIndex((boundary) =>
    typeof which === "function" ? which(boundary) : sameBoundary(boundary, which),
  );
  if (found < 0) throw new Error("Bug! The conversation has no such message.");
  return found;
}
