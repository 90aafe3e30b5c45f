/** Which statements of a handler would begin or end the transaction they live in. */
import { expect, test } from "vitest";
import { refuseTransactionControl } from "../../src/db/transaction-control.ts";

test.each([
  "commit",
  "COMMIT and chain",
  " ;; \n\tend",
  "abort",
  "rollback",
  "Rollback Work",
  "begin",
  "start transaction",
  "prepare transaction 'x'",
  "-- a note\n-- another\ncommit",
  "/* a note */ /* another\n */ rollback",
])("%s is refused", (statement) => {
  expect(() => refuseTransactionControl(statement)).toThrow(TypeError);
});

test.each([
  "savepoint a",
  "release savepoint a",
  "rollback to savepoint a",
  "insert into notes values ('commit')",
  "select 1 -- commit",
  "with ended as (select 1) select * from ended",
  "prepare transactions as select 1",
  "commitments",
  "",
])("%s is not", (statement) => {
  expect(() => refuseTransactionControl(statement)).not.toThrow();
});

test.each([
  ["of dashes", `-- ${"-".repeat(100_000)}\ninsert into a values (1)`],
  ["of stars", `/${"*".repeat(100_000)}/ insert into a values (1)`],
  ["of blank lines", `${" \n".repeat(100_000)}insert into a values (1)`],
])("a long banner %s takes no time to speak of", (_, statement) => {
  expect(() => refuseTransactionControl(statement)).not.toThrow();
});
