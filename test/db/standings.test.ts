/** How each figure stands by its value, in words, and what is to be done. */
import { describe, expect, test } from "vitest";
import { readAlerting } from "../../src/config-operator.ts";
import { concernsOf } from "../../src/operate/alerts.ts";
import type { Figures } from "../../src/operate/figures.ts";
import { type FigureName, standingsOf } from "../../src/operate/standings.ts";
import { figuresWith, HOUR } from "./healthy-figures.ts";

const healthy = (): Figures => figuresWith();
const withPart = <K extends keyof Figures>(key: K, part: Partial<Figures[K]>): Figures =>
  figuresWith({ [key]: part });

const QUEUE = { OUTBOX_QUEUE: { sendBatch: () => Promise.resolve() } };
const SWEEPING = { accounts: ["own"], overdueSeconds: 4 * HOUR };

function standing(
  name: FigureName,
  figures: Figures,
  env: Readonly<Record<string, unknown>> = QUEUE,
  sweeping: Parameters<typeof concernsOf>[2] = SWEEPING,
) {
  const alerting = readAlerting(env);
  const all = standingsOf(figures, concernsOf(figures, alerting, sweeping), alerting);
  const found = all.find((one) => one.name === name);
  if (!found) throw new Error(`${name} is not among them`);
  return found;
}

test("when all is well, everything is, and there is nothing to do", () => {
  const alerting = readAlerting(QUEUE);
  const figures = healthy();
  const all = standingsOf(figures, concernsOf(figures, alerting, SWEEPING), alerting);
  expect(all.map(({ name, standing: is, todo }) => [name, is, todo])).toEqual(
    [
      "receiving",
      "waiting",
      "needs_review",
      "discrepancies",
      "outbox",
      "sweeps",
      "ticks",
      "retention",
      "processing_time",
      "duplicates",
      "ignored",
    ].map((name) => [name, "well", null]),
  );
});

const quiet = { received: 0, processed: 0, processingSeconds: [], duplicatesShare: null };
const review = (reason: string, count: number) => ({
  needsReview: { count, more: false },
  needsReviewByReason: [{ reason, events: { count, more: false }, oldestSeconds: 60 }],
});
const waits = (seconds: number) => ({
  waiting: { count: 7, more: false },
  oldestWaitingSeconds: seconds,
});
const purgedAgo = (seconds: number): Partial<Figures["heartbeats"]> => {
  const { retention } = healthy().heartbeats;
  return { retention: retention && { ...retention, completedSecondsAgo: seconds } };
};
const processedWithin = (p95: number): Partial<Figures["lastHour"]> => ({
  processingSeconds: [{ type: null, events: 90, p50: 0.02, p95, p99: p95 }],
});
const doubled = (duplicates: number, received: number): Partial<Figures["lastHour"]> => ({
  received,
  duplicates,
  duplicatesShare: duplicates / (duplicates + received),
});
const ignoredFor = (reason: string, events: number): Partial<Figures["lastHour"]> => ({
  ignored: [{ reason, events }],
});

describe.each<[FigureName, string, Figures, string, RegExp]>([
  ["receiving", "an hour without events", withPart("lastHour", quiet), "well", /^0 in an hour/],
  [
    "receiving",
    "a day without events",
    { ...withPart("lastHour", quiet), lastDay: { ...healthy().lastDay, received: 0 } },
    "look",
    /within a day/,
  ],
  [
    "receiving",
    "an hour without events, and no tick that counts those before",
    { ...withPart("lastHour", quiet), heartbeats: { tick: null, retention: null } },
    "look",
    /not counted yet/,
  ],
  ["waiting", "15 minutes", withPart("inbox", waits(900)), "well", /^7, oldest 15 min/],
  ["waiting", "more than that", withPart("inbox", waits(901)), "trouble", /Events wait: 7/],
  [
    "needs_review",
    "one event",
    withPart("inbox", review("TypeError", 1)),
    "trouble",
    /1 event \(TypeError\)/,
  ],
  [
    "needs_review",
    "calls alone",
    withPart("outbox", { callsInReview: [{ reason: "Uncertain", count: 2 }] }),
    "trouble",
    /To review: 2 messages \(Uncertain\)/,
  ],
  [
    "discrepancies",
    "an open one",
    withPart("reconciliation", {
      openDiscrepancies: [{ kind: "void_after_paid", objects: 1, oldestSeconds: 9 }],
    }),
    "trouble",
    /^1 /,
  ],
  [
    "outbox",
    "messages that wait for long",
    withPart("outbox", waits(901)),
    "trouble",
    /7 not left/,
  ],
  [
    "sweeps",
    "none for a day",
    withPart("reconciliation", {
      sweeps: healthy().reconciliation.sweeps.map((one) => ({ ...one, seenSecondsAgo: 90_000 })),
    }),
    "trouble",
    /up to 25 h ago/,
  ],
  [
    "sweeps",
    "none yet",
    withPart("reconciliation", { sweeps: [] }),
    "off",
    /^never No sweep has come to its end yet/,
  ],
  ["duplicates", "more, of few", withPart("lastHour", doubled(5, 15)), "look", /^25 %/],
  ["duplicates", "more, of one less", withPart("lastHour", doubled(5, 14)), "well", /^26 %/],
  [
    "ignored",
    "for another account",
    withPart("lastHour", ignoredFor("account", 1)),
    "look",
    /account/,
  ],
  ["ticks", "none ever", withPart("heartbeats", { tick: null }), "trouble", /^never No tick/],
  ["retention", "26 hours ago", withPart("heartbeats", purgedAgo(26 * HOUR)), "well", /^26 h ago/],
  [
    "retention",
    "later",
    withPart("heartbeats", purgedAgo(26 * HOUR + 1)),
    "look",
    /the tables grow/,
  ],
  ["retention", "not yet", withPart("heartbeats", { retention: null }), "off", /^never It has not/],
  [
    "processing_time",
    "within the limit",
    withPart("lastHour", processedWithin(900)),
    "well",
    /95 %/,
  ],
  ["processing_time", "longer", withPart("lastHour", processedWithin(901)), "look", /long after/],
  ["processing_time", "of nothing", withPart("lastHour", quiet), "off", /Nothing was processed/],
  [
    "processing_time",
    "of an hour too full to be counted",
    withPart("lastHour", { ...quiet, ...ignoredFor("no_handler", 30_000) }),
    "off",
    /Not known/,
  ],
  ["duplicates", "a fifth", withPart("lastHour", doubled(20, 80)), "well", /^20 %/],
  ["duplicates", "more", withPart("lastHour", doubled(21, 80)), "look", /^21 %/],
  ["duplicates", "more, of very few", withPart("lastHour", doubled(9, 10)), "well", /^47 %/],
  ["duplicates", "of nothing", withPart("lastHour", quiet), "off", /^–/],
  [
    "ignored",
    "as a matter of course",
    withPart("lastHour", ignoredFor("no_handler", 4)),
    "well",
    /4 in an hour/,
  ],
  [
    "ignored",
    "for the other mode",
    withPart("lastHour", ignoredFor("livemode", 1)),
    "look",
    /livemode/,
  ],
  [
    "ignored",
    "so many that not all are counted",
    withPart("lastHour", ignoredFor("no_handler", 30_000)),
    "well",
    /^more than 30,000 in an hour/,
  ],
])("%s: %s", (name, _, figures, expected, words) => {
  test(`stands as ${expected}, says why, and what to do exactly where it is not well`, () => {
    const { standing: is, value, summary, todo } = standing(name, figures);
    expect(is).toBe(expected);
    expect(`${value} ${summary}`).toMatch(words);
    expect(todo !== null).toBe(is === "look" || is === "trouble");
  });
});

test("what is switched off is neither well nor in trouble", () => {
  expect(standing("sweeps", healthy(), QUEUE, { off: "no key" }).standing).toBe("off");
  expect(standing("outbox", healthy(), {}).standing).toBe("off");
  // Unless something waits for it.
  expect(standing("outbox", withPart("outbox", waits(5)), {})).toMatchObject({
    standing: "look",
    todo: expect.stringContaining("OUTBOX_QUEUE"),
  });
});

test("while processing is paused, what waits deserves a look before it is trouble", () => {
  const paused = { ...QUEUE, PROCESSING: "paused" };
  expect(standing("waiting", withPart("inbox", waits(5)), paused)).toMatchObject({
    standing: "look",
    todo: expect.stringContaining("PROCESSING"),
  });
  expect(standing("waiting", withPart("inbox", waits(901)), paused).standing).toBe("trouble");
});

test("how long processing may take is what was set for the backlog", () => {
  const strict = { ...QUEUE, ALERT_BACKLOG_MINUTES: "1" };
  expect(
    standing("processing_time", withPart("lastHour", processedWithin(60)), strict).standing,
  ).toBe("well");
  expect(
    standing("processing_time", withPart("lastHour", processedWithin(60.1)), strict).standing,
  ).toBe("look");
});

test("without a queue, what has left and is not done is trouble still", () => {
  const left = { notDone: { count: 1, more: false }, oldestNotDoneSeconds: 901 };
  expect(standing("outbox", withPart("outbox", left), {}).standing).toBe("trouble");
});
