/** An `invoice.paid` as large as the door takes: of one long text, or of thousands of lines. */
import { BODY_LIMITS } from "../../../src/http/body.ts";
import { AMOUNT, paidEvent } from "../waiting-events.ts";

export type Shape = "one text" | "many lines";

export function largeEvent(id: string, shape: Shape): string {
  return shape === "one text" ? withText(id) : withLines(id);
}

function withText(id: string): string {
  const build = (footer: string): string => withField(id, "footer", JSON.stringify(footer));
  return build("x".repeat(BODY_LIMITS.bytes - Buffer.byteLength(build(""))));
}

function withLines(id: string): string {
  const line = JSON.stringify({
    id: "il_1QxLargeInvoiceLine000000",
    object: "line_item",
    amount: 100,
    currency: "eur",
    description: "1 × Harbour, monthly",
    metadata: {},
    period: { end: 1_790_000_000, start: 1_787_408_000 },
    quantity: 1,
  });
  const room = BODY_LIMITS.bytes - Buffer.byteLength(withField(id, "lines", "[]"));
  const count = Math.floor(room / (Buffer.byteLength(line) + 1));
  return withField(id, "lines", `[${Array.from({ length: count }, () => line).join(",")}]`);
}

/** The event with one field more in its invoice, or in the place of another. */
function withField(id: string, name: string, json: string): string {
  const event = paidEvent(id, AMOUNT);
  const invoice = { ...event.data?.object, lines: [], [name]: MARK };
  const text = JSON.stringify({ ...event, data: { object: invoice } });
  return text.replace(JSON.stringify(MARK), () => json);
}

const MARK = "@field";
