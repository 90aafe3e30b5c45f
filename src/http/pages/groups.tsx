/** /ops/review and /ops/ignored: events by their reason, one or all of which can be requeued. */
import type { IgnoredGroup } from "../../inbox/review.ts";
import type { InboxState, ReviewReason } from "../../inbox/stats.ts";
import type { OutboxState } from "../../outbox/stats.ts";
import { brief } from "../../operate/wording.ts";
import { hrefOf } from "./links.ts";
import { IGNORED_MEANINGS, meaningOfEventReason } from "./meanings.ts";
import { MessageGroups } from "./outbox.tsx";
import { some } from "../../operate/wording.ts";
import { Away, isNone, Nothing, Reason, Table } from "./parts.tsx";

export function Review({ inbox, outbox }: { inbox: InboxState; outbox: OutboxState }) {
  const { needsReviewByReason: groups } = inbox;
  return (
    <>
      <p>
        Parked: recorded, answered with 200, and not tried again until a person says so. Mend the
        cause, then have them processed again. No payment is booked twice by it.
      </p>
      {groups.length === 0 ? (
        <Nothing>No event needs review.</Nothing>
      ) : (
        <Table<ReviewReason>
          caption="Events that need review, by reason; the commonest first"
          items={groups}
          columns={[
            {
              title: "Reason",
              cell: ({ reason }) => (
                <Reason reason={reason} meaning={meaningOfEventReason(reason)} />
              ),
            },
            { title: "Events", number: true, cell: ({ events }) => some(events) },
            { title: "Oldest", cell: ({ oldestSeconds }) => `${brief(oldestSeconds)} ago` },
            {
              title: "Do",
              cell: ({ reason }) => (
                <>
                  <a href={hrefOf("/ops/events", { state: "needs_review", reason })}>
                    See them<Away>with {reason}</Away>
                  </a>
                  {", or "}
                  <a href={hrefOf("/ops/events/requeue", { reason })}>
                    requeue all…<Away>with {reason}</Away>
                  </a>
                </>
              ),
            },
          ]}
        />
      )}
      <h2>Messages and calls</h2>
      <MessageGroups outbox={outbox} />
    </>
  );
}

export function Ignored({ groups }: { groups: readonly IgnoredGroup[] }) {
  const requeueable = groups.filter(({ events }) => !isNone(events));
  return (
    <>
      <p>
        Verified and recorded, and nothing was done with them, by the rules of their endpoints.
        Counted are those whose payload is there: they can be processed still.
      </p>
      {requeueable.length === 0 ? (
        <Nothing>No event was ignored whose payload is there.</Nothing>
      ) : (
        <Table<IgnoredGroup>
          caption="Ignored events, by reason"
          items={requeueable}
          columns={[
            {
              title: "Reason",
              cell: ({ reason }) => <Reason reason={reason} meaning={IGNORED_MEANINGS[reason]} />,
            },
            { title: "Events", number: true, cell: ({ events }) => some(events) },
            {
              title: "Do",
              cell: ({ reason }) => (
                <>
                  <a href={hrefOf("/ops/events", { state: "ignored", reason })}>
                    See them<Away>with {reason}</Away>
                  </a>
                  {", or "}
                  <a href={hrefOf("/ops/events/requeue", { ignored_reason: reason })}>
                    requeue all…<Away>with {reason}</Away>
                  </a>
                </>
              ),
            },
          ]}
        />
      )}
    </>
  );
}
