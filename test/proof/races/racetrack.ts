/**
 * A database on which two racers run against each other, statement by statement in an order that is
 * chosen, again and again from the same beginning; and what came of it, once everything settled.
 */
import { Client } from "pg";
import { type Connection, connect } from "../../../src/db/connect.ts";
import { classify } from "../../../src/inbox/retry.ts";
import { type Books, readBooks, statementsFor } from "../stage/books.ts";
import type { Choose } from "./interleavings.ts";
import { settleRace } from "./aftermath.ts";
import type { Scene } from "./events.ts";
import type { Pair } from "./pairs.ts";
import type { Racer, Word } from "./racers.ts";
import { Gate, type Step, stepThrough, type Walker } from "./stepper.ts";
import { EFFECTS_TABLE } from "../workers/effect.ts";

/** What was committed of an event at the moment when somebody was told of it. */
export interface Fact {
  readonly known: boolean;
  readonly settled: boolean;
  readonly parked: boolean;
  readonly outcome: string | null;
}

export interface Told extends Word {
  readonly who: string;
  fact: Fact | null;
}

/** How often each event took effect. */
export type Effects = ReadonlyMap<string, number>;

export interface Played {
  readonly steps: readonly Step[];
  readonly told: readonly Told[];
  /** Before the race, and when it was over. */
  readonly effects: { readonly before: Effects; readonly after: Effects };
  /** Once everything was settled. */
  readonly books: Books;
}

export interface Racetrack {
  /** Puts in place what the pair finds, for all its races. */
  readonly arrange: (pair: Pair) => Promise<void>;
  readonly race: (pair: Pair, choose: Choose) => Promise<Played>;
  readonly stop: () => Promise<void>;
}

export const RUNNERS = ["A", "B"] as const;

/**
 * Who looks for a deadlock first is its victim: the same one each time. Long enough for the other
 * to come to its own wait meanwhile.
 */
const DEADLOCK_TIMEOUT = { A: "500ms", B: "10s" } as const;
/** A race takes milliseconds. */
const GIVE_UP_AFTER_MS = 60_000;
/** What `random()` gives, and so the back-off of a failure, is the same in each race. */
const SEED = "select setseed(0.5)";

interface Runner {
  readonly name: string;
  readonly gate: Gate;
  readonly db: Connection;
}

/** @param databaseUrl of a migrated, empty database that nobody else uses. */
export async function openRacetrack(databaseUrl: string): Promise<Racetrack> {
  const endings: (() => Promise<unknown>)[] = [];
  const client = new Client({ connectionString: databaseUrl, application_name: "proof" });
  // Who waits for an answer hears of it.
  client.on("error", () => undefined);
  await client.connect();
  endings.push(() => client.end());
  await client.query(EFFECTS_TABLE);
  await client.query(PREPARE);
  const statements = await statementsFor(client);
  const rows: Scene["rows"] = async (text, values = []) => (await client.query(text, values)).rows;

  const open = async (url: string): Promise<Connection> => {
    const db = await connect(
      { connectionString: url, pipeline: true },
      new AbortController().signal,
    );
    endings.push(() => db.close());
    return db;
  };
  const own = await open(databaseUrl);
  const enter = async (name: (typeof RUNNERS)[number]): Promise<Runner> => {
    const gate = new Gate();
    const url = await gate.route(databaseUrl);
    endings.push(() => gate.stop());
    const db = await open(url);
    await Promise.all(db.send([{ text: `set deadlock_timeout = '${DEADLOCK_TIMEOUT[name]}'` }]));
    return { name, gate, db };
  };
  const runners = [await enter(RUNNERS[0]), await enter(RUNNERS[1])] as const;

  const isBlocked = async (pid: number): Promise<boolean> => {
    const text = "select cardinality(pg_blocking_pids($1)) > 0 as blocked";
    const { rows: found } = await client.query({ name: "blocked", text, values: [pid] });
    return found[0]?.blocked === true;
  };
  const effects = async (): Promise<Effects> => {
    const found = await rows("select event_id, count(*)::int as times from effects group by 1");
    return new Map(found.map((row) => [String(row["event_id"]), Number(row["times"])]));
  };
  const checkFacts = async (told: readonly Told[]): Promise<void> => {
    for (const word of told) word.fact ??= factOf(await rows(FACT, [word.eventId]));
  };

  let before: Effects = new Map();
  return {
    arrange: async (pair) => {
      await client.query(statements.clear);
      await pair.before?.({ db: own, rows });
      await client.query(statements.keep);
      before = await effects();
    },
    race: async ({ racers, beginsAtOnce }, choose) => {
      await client.query(statements.restore);
      await Promise.all(runners.flatMap(({ db }) => db.send([{ text: SEED }])));
      const told: Told[] = [];
      for (const { gate } of runners) gate.state = beginsAtOnce ? "closed behind BEGIN" : "closed";
      const walkers = [
        start(runners[0], racers[0], told),
        start(runners[1], racers[1], told),
      ] as const;
      const running = stepThrough(walkers, choose, isBlocked, () => checkFacts(told));
      const steps = await inTime(running, walkers).catch(async (error: unknown) => {
        // The next race must not meet what is left of this one.
        for (const { gate } of walkers) gate.open();
        await inTime(Promise.all(walkers.map(untilFinished)), walkers);
        throw error;
      });
      for (const { gate } of walkers) gate.open();
      const after = await effects();
      const answers = RUNNERS.map((runner) => told.find(({ who }) => who === runner)?.outcome);
      await settleRace({ db: own, rows }, racers, answers);
      return {
        steps,
        told,
        effects: { before, after },
        books: await readBooks(client, statements),
      };
    },
    stop: async () => {
      for (let end = endings.pop(); end; end = endings.pop()) await end();
    },
  };
}

/** Vacuum, coming at times of its own, might hold a lock. */
const PREPARE = `do $$ declare name text; begin
  for name in select table_name from information_schema.tables where table_schema = 'public' loop
    execute format('alter table %I set (autovacuum_enabled = false)', name);
  end loop;
end $$`;

const FACT = `select processed_at is not null as settled, parked_at is not null as parked, outcome
  from webhook_inbox where event_id = $1`;

function factOf([row]: Record<string, unknown>[]): Fact {
  return {
    known: row !== undefined,
    settled: row?.["settled"] === true,
    parked: row?.["parked"] === true,
    outcome: typeof row?.["outcome"] === "string" ? row["outcome"] : null,
  };
}

/** Sets a racer off; its first statement is held. */
function start({ name, gate, db }: Runner, racer: Racer, told: Told[]): Walker {
  let finished = false;
  const sent: Promise<unknown>[] = [];
  const watched: Connection = {
    ...db,
    send: (statements) => {
      const results = db.send(statements);
      sent.push(...results.map((result) => result.catch(() => undefined)));
      return results;
    },
  };
  const tell = (word: Word): void => void told.push({ ...word, who: name, fact: null });
  const run = async (): Promise<void> => {
    await racer.run(watched, tell).catch((error: unknown) => {
      tell({ eventId: racer.delivers?.id ?? "", outcome: "threw", error: classify(error).code });
    });
    // What was sent and not waited for, such as a ROLLBACK, may be followed by more.
    for (let n = 0; n < sent.length; n++) await sent[n];
    finished = true;
    gate.stir();
  };
  const running = run();
  running.catch(() => undefined);
  return { name, gate, isFinished: () => finished };
}

function untilFinished({ gate, isFinished }: Walker): Promise<void> {
  return gate.until(isFinished);
}

async function inTime<T>(steps: Promise<T>, walkers: readonly Walker[]): Promise<T> {
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const states = walkers.map(({ name, gate }) => `${name} ${gate.held ?? "sends nothing"}`);
    expired.reject(new Error(`A race does not come to its end: ${states.join(", ")}.`));
  }, GIVE_UP_AFTER_MS);
  try {
    return await Promise.race([steps, expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}
