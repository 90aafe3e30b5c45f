/**
 * Keeps a handler's statements from ending the transaction they live in: its COMMIT would commit
 * the mark without the work. Savepoints are a handler's own. With one statement to a message (the
 * extended protocol), and since Postgres refuses COMMIT inside a function or DO block that runs in
 * a transaction, the first word is all there is to look at.
 */
const TRANSACTION_CONTROL =
  /^(?:begin|start|commit|end|abort|rollback(?!\s+to\b)|prepare\s+transaction)\b/i;
/** One piece of what may stand before the first word; sticky, to step over piece after piece. */
const BLANK_OR_COMMENT = /[\s;]+|--[^\n]*|\/\*[^]*?\*\//y;

/** @throws TypeError when the statement would begin or end a transaction. */
export function refuseTransactionControl(statement: string): void {
  let start = 0;
  BLANK_OR_COMMENT.lastIndex = 0;
  while (BLANK_OR_COMMENT.test(statement)) start = BLANK_OR_COMMENT.lastIndex;
  if (TRANSACTION_CONTROL.test(statement.slice(start))) {
    throw new TypeError("A handler's statement may not begin or end the transaction.");
  }
}
