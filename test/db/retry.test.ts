/** What kind of failure an error is, and whether it may park an event. */
import { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { DatabaseUnavailable } from "../../src/db/unavailable.ts";
import { OpeningFailed } from "../../src/db/transaction.ts";
import { NoTimeLeft } from "../../src/inbox/handler.ts";
import { classify, parksAtAttempt, PermanentError } from "../../src/inbox/retry.ts";

function fromPostgres(sqlstate: string): DatabaseError {
  return Object.assign(new DatabaseError("refused", 0, "error"), {
    severity: "ERROR",
    code: sqlstate,
  });
}

function inTheOpening(cause: Error): OpeningFailed {
  return new OpeningFailed("The opening failed.", { cause });
}

test.each([
  ["a handler's own error", new RangeError(), "ours", "RangeError"],
  [
    "a permanent error",
    new PermanentError("no_such_plan"),
    "permanent",
    "PermanentError:no_such_plan",
  ],
  ["a constraint", fromPostgres("23514"), "ours", "23514"],
  ["a statement that took too long", fromPostgres("57014"), "ours", "57014"],
  [
    "a wait, before any work, that took too long",
    inTheOpening(fromPostgres("57014")),
    "contention",
    "57014",
  ],
  ["a constraint in the opening", inTheOpening(fromPostgres("23514")), "ours", "23514"],
  ["a lock that others held", fromPostgres("55P03"), "contention", "55P03"],
  ["a deadlock", fromPostgres("40P01"), "contention", "40P01"],
  ["a shutdown", fromPostgres("57P01"), "infrastructure", "57P01"],
  ["storage that cannot be read", fromPostgres("58030"), "infrastructure", "58030"],
  ["a server that is read-only", fromPostgres("25006"), "infrastructure", "25006"],
  ["time that waiting took", new NoTimeLeft("It is over."), "infrastructure", "NoTimeLeft"],
  ["no database", new DatabaseUnavailable("it is gone"), "infrastructure", "DatabaseUnavailable"],
])("%s", (_, error, kind, code) => {
  expect(classify(error)).toEqual({ kind, code });
});

test("only permanent errors and ours park", () => {
  expect(parksAtAttempt("permanent", 10)).toBe(1);
  expect(parksAtAttempt("ours", 10)).toBe(10);
  expect(parksAtAttempt("contention", 10)).toBeNull();
  expect(parksAtAttempt("infrastructure", 10)).toBeNull();
});
