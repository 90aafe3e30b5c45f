/** What a person reads of a round: a line of progress, and the table at its end. */
import type { Effects } from "./effects.ts";
import type { Round } from "./round.ts";

const MAX_PROBLEMS = 20;
const TTY_INTERVAL_MS = 100;
const PLAIN_INTERVAL_MS = 10_000;

/** The table: what was delivered and answered, what is booked, and whether that is right. */
export function roundTable({
  deliveries,
  expected,
  audit,
  effects,
  missed,
  cuts,
  byCron,
  seconds,
  problems,
}: Round): string {
  const { books } = audit;
  const rows: [string, string | number, string][] = [
    [
      "deliveries",
      deliveries.attempts,
      `${deliveries.first} first, ${deliveries.duplicates} duplicates, ` +
        `${deliveries.redeliveries} redeliveries; in ${seconds.toFixed(1)} s`,
    ],
    ["answers", deliveries.attempts, counts(deliveries.outcomes)],
    [
      "events",
      expected.receipts.length,
      counts(countBy(books.receipts, (row) => row.ignored_reason ?? row.outcome ?? row.state)),
    ],
    ["invoices", books.invoices.length, counts(countBy(books.invoices, (row) => row.status))],
    ["entries", books.entries.length, sums(books.entries)],
    ["messages", books.messages.length, "in the outbox"],
    ...(effects === null ? [] : [callsRow(effects)]),
    [
      "discrepancies",
      books.discrepancies.length,
      counts(countBy(books.discrepancies, (row) => row.kind)),
    ],
  ];
  const width = Math.max(...rows.map(([, number]) => String(number).length));
  const lines = rows.map(([name, number, text]) =>
    `  ${name.padEnd(14)} ${String(number).padStart(width)}   ${text}`.trimEnd(),
  );
  const stored = deliveries.outcomes.has("stored");
  const notes = [
    ...(cuts > 0
      ? [`${cuts} database connections were cut under way, and Stripe redelivered.`]
      : []),
    ...(byCron > 0 || stored ? [sayByCron(byCron)] : []),
    ...(missed === null
      ? []
      : [`${missed.dropped} events of concern never came; a sweep found ${missed.found} of them.`]),
    ...(audit.cronFailure === null ? [] : [`The cron could not be called: ${audit.cronFailure}.`]),
  ];
  if (notes.length > 0) lines.push("", ...notes.map((note) => `  ${note}`));
  return [...lines, "", ...verdict(problems)].join("\n");
}

function callsRow({ due, calls }: Effects): [string, number, string] {
  return ["calls", calls, `to Stripe, on account of ${due} payments; some were made to fail`];
}

function sayByCron(events: number): string {
  if (events === 0) return "Each event was processed behind its answer; none was left to the cron.";
  return events === 1
    ? "The cron processed 1 event that was left over."
    : `The cron processed ${events} events that were left over.`;
}

function verdict(problems: readonly string[]): string[] {
  if (problems.length === 0) {
    return ["  The books agree: every payment is booked exactly once, and nothing else is."];
  }
  const left = problems.length - MAX_PROBLEMS;
  return [
    `  The books DO NOT agree: ${problems.length} differences.`,
    ...problems.slice(0, MAX_PROBLEMS).map((problem) => `  - ${problem}`),
    ...(left > 0 ? [`  - and ${left} more`] : []),
  ];
}

/** Shows progress: on a terminal in place, elsewhere a line now and then. */
export function progressOn(stream: NodeJS.WriteStream) {
  let next = Date.now() + (stream.isTTY ? 0 : PLAIN_INTERVAL_MS);
  const show = (text: string): void => {
    if (Date.now() < next) return;
    next = Date.now() + (stream.isTTY ? TTY_INTERVAL_MS : PLAIN_INTERVAL_MS);
    stream.write(stream.isTTY ? `\r\u001B[K  ${text}` : `  ${text}\n`);
  };
  return {
    onProgress: (done: number, planned: number): void => {
      show(`${done} deliveries (${Math.min(99, Math.floor((done / planned) * 100))} %)`);
    },
    onWait: (events: number, seconds: number): void => {
      show(`events still to be processed: ${events} (waiting ${seconds} s at most)`);
    },
    clear: (): void => {
      if (stream.isTTY) stream.write("\r\u001B[K");
    },
  };
}

function countBy<Row>(rows: readonly Row[], key: (row: Row) => string): Map<string, number> {
  const groups = Map.groupBy(rows, key);
  return new Map([...groups].map(([name, group]) => [name, group.length]));
}

/** `processed 812, duplicate 143`, the most frequent first. */
function counts(numbers: ReadonlyMap<string, number>): string {
  return [...numbers]
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, number]) => `${name} ${number}`)
    .join(", ");
}

function sums(entries: Round["audit"]["books"]["entries"]): string {
  return [...Map.groupBy(entries, ({ currency }) => currency ?? "unknown")]
    .map(([currency, group]) => {
      const sum = group.reduce((total, { amount }) => total + amount, 0);
      return currency === "unknown" ? `${sum}` : money(sum, currency);
    })
    .toSorted()
    .join(", ");
}

/** Minor units in the currency's own way of writing: JPY has no decimals, KWD has three. */
function money(minorUnits: number, currency: string): string {
  const format = new Intl.NumberFormat("en", {
    style: "currency",
    currency,
    currencyDisplay: "code",
  });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(minorUnits / 10 ** digits).replaceAll("\u00A0", " ");
}
