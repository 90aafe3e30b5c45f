/**
 * One path, disturbed at every message of its conversation in every way that makes a difference
 * there, once each; then delivered again and ticked until it is settled, and compared with the same
 * path undisturbed.
 */
import { isSuccess } from "../local/deliver.ts";
import type { Fate } from "../local/proxy.ts";
import { type Books, compareBooks, isSound, type Verdict } from "./books.ts";
import type { Path } from "./paths.ts";
import type { Stage } from "./stage.ts";
import { type Boundary, describeBoundary, sameBoundary } from "./wire.ts";

export const WAYS = [
  "cut before",
  "cut half",
  "cut after",
  "kill the Worker",
  "terminate the backend",
  "restart Postgres",
] as const;
export type Way = (typeof WAYS)[number];

/** What it took, after the disturbance, until everything was settled. */
export interface Recovery {
  readonly deliveries: number;
  readonly ticks: number;
  /** How long leases and back-offs kept events from being claimed; not waited for, but aged. */
  readonly waitSeconds: number;
}

export interface Finding {
  readonly way: Way;
  readonly boundary: Boundary;
  readonly verdict: Verdict;
}

export interface PathReport {
  readonly name: string;
  readonly boundaries: number;
  readonly runs: number;
  readonly lost: readonly Finding[];
  readonly doubled: readonly Finding[];
  readonly stuck: readonly Finding[];
  /** Settled, nothing lost and nothing doubled, and yet another end. */
  readonly differing: readonly Finding[];
  readonly longest: Recovery;
}

export interface CrashPointOptions {
  readonly ways?: readonly Way[];
  /** Only every so many'th of the runs, for a short proof. */
  readonly every?: number;
  readonly onRun?: (done: number, all: number) => void;
}

const MOST_ROUNDS = 8;

export async function proveCrashPoints(
  stage: Stage,
  path: Path,
  { ways = WAYS, every = 1, onRun }: CrashPointOptions = {},
): Promise<PathReport> {
  await stage.clear();
  await path.arrange?.(stage);
  await stage.quiet();
  await stage.keep();
  const undisturbed = await play(stage, path, null);
  const { boundaries } = undisturbed;
  const runs = boundaries
    .flatMap((boundary) =>
      ways.filter((way) => matters(way, boundary)).map((way) => ({ way, boundary })),
    )
    .filter((_, index) => index % every === 0);

  const findings: (Finding & { readonly recovery: Recovery })[] = [];
  for (const [index, { way, boundary }] of runs.entries()) {
    const played = await play(stage, path, { way, boundary });
    if (!played.disturbed) {
      throw new Error(`${path.name}: ${describeBoundary(boundary)} was not reached again.`);
    }
    const verdict = compareBooks(undisturbed.books, played.books);
    findings.push({ way, boundary, verdict, recovery: played.recovery });
    onRun?.(index + 1, runs.length);
  }
  const unsound = findings.filter(({ verdict }) => !isSound(verdict));
  const withSome = (what: keyof Verdict) =>
    unsound.filter(({ verdict }) => verdict[what].length > 0);
  return {
    name: path.name,
    boundaries: boundaries.length,
    runs: runs.length,
    lost: withSome("lost"),
    doubled: withSome("doubled"),
    stuck: withSome("stuck"),
    differing: withSome("differing").filter(
      ({ verdict: { lost, doubled, stuck } }) => lost.length + doubled.length + stuck.length === 0,
    ),
    longest: longestOf(findings.map(({ recovery }) => recovery)),
  };
}

/**
 * Whether a way says something at a boundary that no other says there. Who is killed minds no more
 * what it was told, and what it said counts where Postgres acts on it. A backend that is terminated
 * tells the Worker so.
 */
function matters(way: Way, { from, type }: Boundary): boolean {
  const asksToAct = from === "client" && (type === "S" || type === "Q");
  switch (way) {
    case "cut before":
    case "cut half":
    case "cut after":
      return true;
    case "kill the Worker":
      return asksToAct || type === "startup" || type === "X";
    case "terminate the backend":
      return from === "client" && type !== "startup";
    case "restart Postgres":
      return asksToAct || (from === "server" && type === "Z");
  }
}

interface Played {
  readonly books: Books;
  readonly boundaries: readonly Boundary[];
  readonly disturbed: boolean;
  readonly recovery: Recovery;
}

/** One path, from what was arranged to its end. */
async function play(
  stage: Stage,
  path: Path,
  at: { readonly way: Way; readonly boundary: Boundary } | null,
): Promise<Played> {
  await stage.restore();

  const conversation = stage.wire.listen(
    at && {
      at: (boundary) => sameBoundary(boundary, at.boundary),
      disturb: () => disturb(stage, at.way),
    },
  );
  const answers = path.act
    ? await path.act(stage).then(() => [])
    : await Promise.all(path.deliveries.map(stage.deliver));
  await stage.quiet();
  // The Worker may have given up before that is over.
  await conversation.disturbing;
  stage.wire.hangUp();
  const disturbed = conversation.disturbing !== null;
  if (disturbed && at?.way === "kill the Worker") await stage.workerd.revived();

  const unanswered = path.deliveries.filter((_, index) => {
    const answer = answers[index];
    return path.act ? false : !answer || !isSuccess(answer);
  });
  const recovery = await settle(stage, path, unanswered);
  await stage.quiet();
  const { boundaries } = conversation;
  return { books: await stage.books(), boundaries, disturbed, recovery };
}

async function disturb(stage: Stage, way: Way): Promise<Fate> {
  switch (way) {
    case "cut before":
    case "cut half":
    case "cut after":
      return way;
    case "kill the Worker":
      await stage.workerd.kill();
      return "cut after";
    case "terminate the backend":
      await stage.terminateBackends();
      return "pass";
    case "restart Postgres":
      await stage.restartPostgres();
      return "pass";
  }
}

/** As Stripe and the cron do, with the times between them passed over. */
async function settle(stage: Stage, path: Path, unanswered: Path["deliveries"]): Promise<Recovery> {
  const recovery = { deliveries: 0, ticks: 0, waitSeconds: 0 };
  for (const delivery of unanswered) {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      recovery.deliveries += 1;
      if (isSuccess(await stage.deliver(delivery))) break;
    }
  }
  await path.again?.(stage);
  for (let round = 0; round < MOST_ROUNDS; round++) {
    await stage.quiet();
    const waited = await passTime(stage);
    if (waited === null) break;
    recovery.waitSeconds += waited;
    recovery.ticks += 1;
    await stage.tick("receiver");
  }
  return recovery;
}

/** Makes what waits due; returns for how long that would have taken, null when nothing waits. */
async function passTime(stage: Stage): Promise<number | null> {
  const waiting = await stage.rows(`
    with waiting as (
      select event_id, extract(epoch from available_at - now())::float8 as seconds
      from webhook_inbox where processed_at is null and parked_at is null
    ), aged as (
      update webhook_inbox set available_at = now()
      where processed_at is null and parked_at is null and available_at > now()
    )
    select seconds from waiting`);
  if (waiting.length === 0) return null;
  return Math.max(0, ...waiting.map(({ seconds }) => Number(seconds)));
}

function longestOf(recoveries: readonly Recovery[]): Recovery {
  const most = (pick: (recovery: Recovery) => number): number =>
    Math.max(0, ...recoveries.map(pick));
  return {
    deliveries: most(({ deliveries }) => deliveries),
    ticks: most(({ ticks }) => ticks),
    waitSeconds: most(({ waitSeconds }) => waitSeconds),
  };
}
