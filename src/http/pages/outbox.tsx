/** /ops/outbox: do messages leave, and does what follows from them happen? */
import { MOST_COUNTED } from "../../db/rows.ts";
import type { ListedMessage, MessageState, Page } from "../../operate/records.ts";
import type { OutboxState, Reason as MessageReason } from "../../outbox/stats.ts";
import { brief } from "../../operate/wording.ts";
import type { Query } from "./links.ts";
import { hrefOf } from "./links.ts";
import { meaningOfMessageReason } from "./meanings.ts";
import { counted, number, some } from "../../operate/wording.ts";
import { Away, Facts, Nothing, ObjectLink, Pages, Table, Time, Reason } from "./parts.tsx";

const STATES = [
  { state: "needs_review", title: "Need review" },
  { state: "waiting", title: "Waiting" },
  { state: "not_done", title: "Left, not done" },
  { state: "done", title: "Done" },
] as const satisfies readonly { state: MessageState; title: string }[];

/** Longer than the queue keeps one. */
const VANISHED_HOURS = 96;

interface OutboxProps {
  readonly outbox: OutboxState;
  readonly query: Query;
  readonly state: MessageState;
  readonly found: Page<ListedMessage>;
  readonly next: string | null;
}

export function Outbox({ outbox, query, state, found, next }: OutboxProps) {
  const { waiting, oldestWaitingSeconds, notDone, oldestNotDoneSeconds } = outbox;
  return (
    <>
      <p>What follows from a booked payment leaves as a message, and is done once in effect.</p>
      <Facts
        facts={[
          ["Waiting to leave", withOldest(some(waiting), oldestWaitingSeconds)],
          ["Left, not done", withOldest(some(notDone), oldestNotDoneSeconds)],
        ]}
      />
      {oldestNotDoneSeconds !== null && oldestNotDoneSeconds > VANISHED_HOURS * 3_600 && (
        <p>
          The queue keeps a message for four days: some have vanished there.{" "}
          <a href={hrefOf("/ops/messages/requeue", { not_done_hours: VANISHED_HOURS })}>
            Send again what left so long ago…
          </a>
        </p>
      )}
      <h2>Messages and calls that need review</h2>
      <MessageGroups outbox={outbox} />
      <h2>Messages</h2>
      {query["reason"] !== undefined && (
        <p>
          Of those that need review, the ones with <strong class="id">{query["reason"]}</strong>.
        </p>
      )}
      <ul class="choices" aria-label="Which messages">
        {STATES.map((one) => (
          <li>
            <a
              href={hrefOf("/ops/outbox", { state: one.state })}
              aria-current={one.state === state ? "true" : undefined}
            >
              {one.title}
            </a>
          </li>
        ))}
      </ul>
      {found.items.length === 0 ? (
        <Nothing>There is no such message.</Nothing>
      ) : (
        <Table<ListedMessage>
          caption={`${counted(found.items.length, "message")}${next === null ? "" : " on this page"}, the ${query["order"] ?? "newest"} first`}
          items={found.items}
          columns={[
            { title: "Message", cell: ({ id, type }) => `${id} ${type}` },
            { title: "About", cell: ({ aggregateId }) => <ObjectLink id={aggregateId} /> },
            { title: "Written", cell: ({ createdAt }) => <Time at={createdAt} /> },
            { title: "Left", cell: ({ publishedAt }) => <Time at={publishedAt} /> },
            { title: "Done", cell: ({ doneAt }) => <Time at={doneAt} /> },
            { title: "Last error", cell: ({ reason }) => reason ?? "none" },
            { title: "Do", cell: (message) => <Again message={message} /> },
          ]}
        />
      )}
      <Pages path="/ops/outbox" query={query} next={next} />
    </>
  );
}

function Again({ message: { id, state } }: { message: ListedMessage }) {
  if (state !== "needs_review" && state !== "not_done") return <span class="faint">nothing</span>;
  return <a href={hrefOf("/ops/messages/requeue", { message_id: id })}>Send it again…</a>;
}

function withOldest(count: string, seconds: number | null): string {
  return seconds === null ? count : `${count}, the oldest for ${brief(seconds)}`;
}

/** Of all reasons together, so many are counted. */
const upTo = (count: number): string =>
  count >= MOST_COUNTED ? `${number(MOST_COUNTED)} or more` : number(count);

/** Messages that could not be sent, and calls: by reason. */
export function MessageGroups({ outbox }: { outbox: OutboxState }) {
  const groups = new Map<string, { reason: string; messages: number; calls: number }>();
  const group = (reason: string) => {
    const known = groups.get(reason) ?? { reason, messages: 0, calls: 0 };
    groups.set(reason, known);
    return known;
  };
  const add = (reasons: readonly MessageReason[], what: "messages" | "calls"): void => {
    for (const { reason, count } of reasons) group(reason)[what] += count;
  };
  add(outbox.messagesInReview, "messages");
  add(outbox.callsInReview, "calls");
  if (groups.size === 0) return <Nothing>No message or call needs review.</Nothing>;
  return (
    <Table
      caption="By reason: messages that could not be sent, and calls to Stripe"
      items={[...groups.values()]}
      columns={[
        {
          title: "Reason",
          cell: ({ reason }) => <Reason reason={reason} meaning={meaningOfMessageReason(reason)} />,
        },
        { title: "Messages", number: true, cell: ({ messages }) => upTo(messages) },
        { title: "Calls", number: true, cell: ({ calls }) => upTo(calls) },
        {
          title: "Do",
          cell: ({ reason }) => (
            <>
              <a href={hrefOf("/ops/outbox", { state: "needs_review", reason })}>
                See them<Away>with {reason}</Away>
              </a>
              {", or "}
              <a href={hrefOf("/ops/messages/requeue", { reason })}>
                send all again…<Away>with {reason}</Away>
              </a>
            </>
          ),
        },
      ]}
    />
  );
}
