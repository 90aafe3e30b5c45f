/**
 * One path, disturbed at every message of its conversation in every way that makes a difference
 * there, once each; then delivered again and ticked until it is settled, and compared with the same
 * path undisturbed.
 */
import { isSuccess } from "../../local/deliver.ts";
import type { Fate } from "../../local/proxy.ts";
import { type Books, compareBooks, isSound, type Verdict } from "../stage/books.ts";
import type { Path } from "./paths.ts";
import { type Recovery, settle } from "../stage/settle.ts";
import type { Delivery, Stage } from "../stage/stage.ts";
import { type Boundary, describeBoundary, sameBoundary, unintelligible } from "../stage/wire.ts";

export const WAYS = [
  "cut before",
  "cut half",
  "cut after",
  "kill the Worker",
  "terminate the backend",
  "restart Postgres",
  "refuse the statement",
] as const;
export type Way = (typeof WAYS)[number];

/** One disturbance. */
export interface Run {
  readonly way: Way;
  readonly boundary: Boundary;
}

export interface Finding extends Run {
  readonly verdict: Verdict;
}

export interface PathReport {
  readonly name: string;
  readonly boundaries: number;
  /** The same, each, undisturbed. */
  readonly conversation: readonly Boundary[];
  /** The beginnings of the statements that it consists of, undisturbed. */
  readonly statements: readonly string[];
  readonly runs: number;
  /** Every run, whatever was found. */
  readonly played: readonly Finding[];
  /** Of the undisturbed run: only what the path is `expected` to lead to can find it wanting. */
  readonly undisturbed: Verdict;
  /** Where the undisturbed run itself came to another end than the path should. */
  readonly wrongEnds: readonly string[];
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
  /**
   * Conversations that were disturbed before, and are not again; this path's are added. A tick opens
   * a connection for each kind of work: where there is none, it says on it what every tick says.
   */
  readonly idle?: Set<string>;
  /** Whether messages of Postgres are cut in the middle, too: nobody reads a half of one. [true] */
  readonly halves?: boolean;
  /** One of those where something must show, and one where it must not, are always among them. */
  readonly mustShow?: (conversation: readonly Boundary[], run: Run) => boolean | null;
  readonly onRun?: (done: number, all: number) => void;
}

export async function proveCrashPoints(
  stage: Stage,
  path: Path,
  {
    ways = WAYS,
    every = 1,
    mustShow,
    halves = true,
    idle = new Set(),
    onRun,
  }: CrashPointOptions = {},
): Promise<PathReport> {
  const other = path.expected ? await playUndisturbed(stage, path.expected) : null;
  const undisturbed = await playUndisturbed(stage, path);
  const { boundaries } = undisturbed;
  const expected = other?.books ?? undisturbed.books;
  const idleHere = idleConversations(boundaries);
  const known = new Set([...idleHere].flatMap(([one, said]) => (idle.has(said) ? [one] : [])));
  for (const said of idleHere.values()) idle.add(said);
  const all = boundaries
    .filter(({ connection }) => !known.has(connection))
    .flatMap((boundary) =>
      ways
        .filter((way) => matters(way, boundary, boundaries, halves))
        .map((way) => ({ way, boundary })),
    );
  const telling = [true, false].map((shows) =>
    all.findIndex((run) => mustShow?.(boundaries, run) === shows),
  );
  const runs = all.filter((_, index) => index % every === 0 || telling.includes(index));

  const findings: (Finding & { readonly recovery: Recovery })[] = [];
  for (const [index, { way, boundary }] of runs.entries()) {
    const played = await play(stage, path, { way, boundary });
    if (!played.disturbed) {
      throw new Error(`${path.name}: ${describeBoundary(boundary)} was not reached again.`);
    }
    const verdict = compareBooks(expected, played.books);
    findings.push({ way, boundary, verdict, recovery: played.recovery });
    onRun?.(index + 1, runs.length);
  }
  const unsound = findings.filter(({ verdict }) => !isSound(verdict));
  const withSome = (what: keyof Verdict) =>
    unsound.filter(({ verdict }) => verdict[what].length > 0);
  return {
    name: path.name,
    boundaries: boundaries.length,
    conversation: boundaries,
    statements: [...new Set(boundaries.map(({ statement }) => statement))],
    runs: runs.length,
    played: findings,
    undisturbed: compareBooks(expected, undisturbed.books),
    wrongEnds: Object.entries(path.ends ?? {}).flatMap(([what, count]) => {
      const found = countRows(undisturbed.books, what);
      return found === count ? [] : [`${what} has ${found} rows, not ${count}`];
    }),
    lost: withSome("lost"),
    doubled: withSome("doubled"),
    stuck: withSome("stuck"),
    differing: withSome("differing").filter(
      ({ verdict: { lost, doubled, stuck } }) => lost.length + doubled.length + stuck.length === 0,
    ),
    longest: longestOf(findings.map(({ recovery }) => recovery)),
  };
}

/** @param what a table, or `table.column`: those of its rows in which that time has come. */
function countRows(books: Books, what: string): number {
  const [table = "", column] = what.split(".");
  const rows = books.get(table) ?? [];
  return column === undefined ? rows.length : rows.filter((row) => row[column] === true).length;
}

/**
 * Whether a way says something at a boundary that no other says there. A Worker that is killed, and
 * a Postgres that crashes, matter where a transaction begins or ends, with a Query: whatever is
 * between is rolled back. A backend that is terminated tells the Worker so. A statement is refused
 * once, and the conversation goes on.
 *
 * Of two messages of Postgres in a row, before the second is after the first. And when a session
 * begins, Postgres reports some fifteen parameters, a message each, which nobody reads: the first
 * stands for all.
 */
function matters(
  way: Way,
  boundary: Boundary,
  conversation: readonly Boundary[],
  halves: boolean,
): boolean {
  const { from, type } = boundary;
  const previous = messageBefore(boundary, conversation);
  switch (way) {
    case "cut before":
    case "cut half":
    case "cut after":
      if (isParameter(boundary) && previous && isParameter(previous)) return false;
      if (way === "cut half" && from === "server") return halves;
      return way !== "cut before" || from === "client" || previous?.from === "client";
    case "kill the Worker":
    case "restart Postgres":
      return from === "client" && type === "Q";
    case "terminate the backend":
      return from === "client" && type !== "startup";
    case "refuse the statement":
      return from === "client" && (type === "P" || type === "Q");
  }
}

function isParameter({ from, type }: Boundary): boolean {
  return from === "server" && type === "S";
}

/** On the same connection, from whichever side. */
function messageBefore(
  boundary: Boundary,
  conversation: readonly Boundary[],
): Boundary | undefined {
  const spoken = conversation.filter(({ connection }) => connection === boundary.connection);
  return spoken[spoken.indexOf(boundary) - 1];
}

/** What was said on each connection on which Postgres had no row to tell of. */
function idleConversations(boundaries: readonly Boundary[]): ReadonlyMap<number, string> {
  const said = Map.groupBy(boundaries, ({ connection }) => connection);
  return new Map(
    [...said]
      .filter(
        ([, messages]) => !messages.some(({ from, type }) => from === "server" && type === "D"),
      )
      .map(([connection, messages]) => [
        connection,
        messages.map(({ from, type, statement }) => `${from} ${type} ${statement}`).join("\n"),
      ]),
  );
}

interface Played {
  readonly books: Books;
  readonly boundaries: readonly Boundary[];
  readonly disturbed: boolean;
  readonly recovery: Recovery;
}

async function playUndisturbed(stage: Stage, path: Path): Promise<Played> {
  await stage.clear();
  await path.arrange?.(stage);
  await stage.quiet();
  await stage.keep();
  return play(stage, path, null);
}

/** One path, from what was arranged to its end. */
async function play(stage: Stage, path: Path, at: Run | null): Promise<Played> {
  await stage.restore();

  const met: Delivered[] = [];
  const conversation = stage.wire.listen(
    at && {
      at: (boundary) => sameBoundary(boundary, at.boundary),
      disturb: async () => {
        if (path.meets) met.push(await deliver(stage, path.meets));
        return disturb(stage, at);
      },
    },
  );
  const answers = path.act
    ? await path.act(stage).then(() => [])
    : await Promise.all(path.deliveries.map((delivery) => deliver(stage, delivery)));
  await stage.quiet();
  // The Worker may have given up before that is over.
  await conversation.disturbing;
  stage.wire.hangUp();
  const disturbed = conversation.disturbing !== null;
  if (disturbed && at?.way === "kill the Worker") await stage.workerd.revived();

  // One 2xx is enough for Stripe, whichever delivery of the event it answers.
  const taken = new Set([...answers, ...met].flatMap(({ key, success }) => (success ? [key] : [])));
  const unanswered = path.act ? [] : path.deliveries.filter((one) => !taken.has(keyOf(one)));
  const recovery = await settle(stage, unanswered, { again: path.again });
  await stage.quiet();
  const { boundaries } = conversation;
  return { books: await stage.books(), boundaries, disturbed, recovery };
}

interface Delivered {
  readonly key: string;
  readonly success: boolean;
}

async function deliver(stage: Stage, delivery: Delivery): Promise<Delivered> {
  return { key: keyOf(delivery), success: isSuccess(await stage.deliver(delivery)) };
}

function keyOf({ endpoint, event }: Delivery): string {
  return `${endpoint} ${event.id}`;
}

/** Says what becomes of the message at which it happens. */
export async function disturb(stage: Stage, { way, boundary }: Run): Promise<Fate> {
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
    case "refuse the statement":
      return { instead: unintelligible(boundary) };
  }
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
