/**
 * The tables. Each says what one row is, and states as a CHECK every rule that SQL can hold.
 * Times are the database's (`now()`), amounts are whole minor units as Stripe sends them.
 * Long, because the whole of it is to be read in one place.
 */
import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  unique,
  uniqueIndex,
} from "drizzle-orm/pg-core";

const time = (name: string) => timestamp(name, { withTimezone: true });
const minorUnits = (name: string) => bigint(name, { mode: "number" });
const fence = () => bigint("fence", { mode: "number" }).notNull().default(0);

/**
 * One event as one endpoint received it. Its primary key decides which delivery does the work.
 *
 * Migration 0004 has it vacuumed every 50,000 inserts. By default that is done when a fifth of the
 * table is new, and until then each row that is counted from an index is looked up in the table.
 * Migration 0005 keeps the payload of a row of over 2 kB beside the table, however far compression
 * would shrink it: a claim and a mark write the row anew, and copied what stood in it.
 */
export const webhookInbox = pgTable(
  "webhook_inbox",
  {
    provider: text("provider").notNull().default("stripe"),
    endpoint: text("endpoint").notNull(),
    eventId: text("event_id").notNull(),
    eventType: text("event_type").notNull(),
    /** `data.object.id`, so that a person can find all events of one invoice. */
    objectId: text("object_id"),
    /** The verified JSON; null only after retention purged it. */
    payload: jsonb("payload"),
    receivedAt: time("received_at").notNull().defaultNow(),
    /** When the event may be claimed (again): the end of a lease, or of a back-off. */
    availableAt: time("available_at").notNull().defaultNow(),
    attempts: integer("attempts").notNull().default(0),
    /** Grows at every claim, mark, record and requeue; whoever holds an older one changes nothing. */
    fence: fence(),
    /** An error's class or SQLSTATE; never its message, which may hold personal data. */
    lastError: text("last_error"),
    /** When the event was settled; null while it is not. */
    processedAt: time("processed_at"),
    outcome: text("outcome", { enum: ["processed", "ignored"] }),
    ignoredReason: text("ignored_reason", {
      enum: ["no_handler", "livemode", "account", "test_id", "thin"],
    }),
    /** Not null: the event needs review; a person owns it now. */
    parkedAt: time("parked_at"),
    /** True when `payload` differs from what was sent, because jsonb refuses what was sent. */
    payloadAltered: boolean("payload_altered").notNull().default(false),
    duplicates: integer("duplicates").notNull().default(0),
  },
  (inbox) => [
    primaryKey({ columns: [inbox.provider, inbox.endpoint, inbox.eventId] }),
    index("webhook_inbox_due")
      .on(inbox.availableAt)
      .where(sql`${inbox.processedAt} is null and ${inbox.parkedAt} is null`),
    // For the age of the oldest that waits, and how many do.
    index("webhook_inbox_waiting")
      .on(inbox.receivedAt)
      .where(sql`${inbox.processedAt} is null and ${inbox.parkedAt} is null`),
    // For lists and counts by reason.
    index("webhook_inbox_needs_review")
      .on(inbox.lastError, inbox.receivedAt)
      .where(sql`${inbox.parkedAt} is not null`),
    index("webhook_inbox_ignored")
      .on(inbox.ignoredReason, inbox.receivedAt)
      .where(sql`${inbox.outcome} = 'ignored' and ${inbox.payload} is not null`),
    // For lists, and for what was received lately. A BRIN would be smaller, and find nothing any
    // more once new rows take the place of those that were purged.
    index("webhook_inbox_received").on(inbox.receivedAt),
    // For lists by endpoint and type.
    index("webhook_inbox_streams").on(inbox.endpoint, inbox.eventType, inbox.receivedAt),
    // For a person who looks for a customer's events: those that failed, of which no invoice may tell
    // yet. Not all that wait: to write an entry, the payload must be read. Cut, because an index
    // takes no long text, and whatever Stripe sends must be stored; by its id, also where the whole
    // customer stands there.
    index("webhook_inbox_failed_customer")
      .on(
        sql`left(coalesce(${inbox.payload} #>> '{data,object,customer,id}', ${inbox.payload} #>> '{data,object,customer}'), 255)`,
      )
      .where(sql`${inbox.processedAt} is null and ${inbox.lastError} is not null`),
    // For retention: each settled row is in one of the two.
    index("webhook_inbox_purgeable")
      .on(inbox.processedAt)
      .where(sql`${inbox.processedAt} is not null and ${inbox.payload} is not null`),
    index("webhook_inbox_tombstones")
      .on(inbox.processedAt)
      .where(sql`${inbox.payload} is null`),
    index("webhook_inbox_object_id").on(inbox.objectId),
    check(
      "webhook_inbox_settled_or_parked",
      sql`${inbox.processedAt} is null or ${inbox.parkedAt} is null`,
    ),
    check(
      "webhook_inbox_outcome_when_settled",
      sql`(${inbox.outcome} is null) = (${inbox.processedAt} is null)`,
    ),
    check("webhook_inbox_outcome", sql`${inbox.outcome} in ('processed', 'ignored')`),
    check(
      "webhook_inbox_ignored_reason_when_ignored",
      sql`(${inbox.ignoredReason} is not null) = (${inbox.outcome} is not null and ${inbox.outcome} = 'ignored')`,
    ),
    check(
      "webhook_inbox_ignored_reason",
      sql`${inbox.ignoredReason} in ('no_handler', 'livemode', 'account', 'test_id', 'thin')`,
    ),
    check(
      "webhook_inbox_parked_has_reason",
      sql`${inbox.parkedAt} is null or ${inbox.lastError} is not null`,
    ),
    check(
      "webhook_inbox_purged_only_when_settled",
      sql`${inbox.payload} is not null or ${inbox.processedAt} is not null`,
    ),
    check(
      "webhook_inbox_payload_is_an_object",
      sql`${inbox.payload} is null or jsonb_typeof(${inbox.payload}) = 'object'`,
    ),
    check(
      "webhook_inbox_counts",
      sql`${inbox.attempts} >= 0 and ${inbox.fence} >= 0 and ${inbox.duplicates} >= 0`,
    ),
  ],
);

/** One Stripe invoice, in the latest state that its events have proved. */
export const invoices = pgTable(
  "invoices",
  {
    id: text("id").primaryKey(),
    customerId: text("customer_id"),
    status: text("status", {
      enum: ["draft", "open", "paid", "void", "uncollectible"],
    }).notNull(),
    currency: text("currency"),
    /** What the booking event says was paid; 0 until then. */
    amountPaid: minorUnits("amount_paid").notNull().default(0),
    paidAt: time("paid_at"),
    updatedAt: time("updated_at").notNull().defaultNow(),
  },
  (invoice) => [
    // Cut, because an index takes no long text.
    index("invoices_customer_id").on(sql`left(${invoice.customerId}, 255)`),
    check(
      "invoices_status",
      sql`${invoice.status} in ('draft', 'open', 'paid', 'void', 'uncollectible')`,
    ),
    check("invoices_currency", sql`${invoice.currency} ~ '^[a-z]{3}$'`),
    check("invoices_amount_paid", sql`${invoice.amountPaid} between 0 and 9007199254740991`),
    check(
      "invoices_paid_at_when_paid",
      sql`(${invoice.paidAt} is not null) = (${invoice.status} = 'paid')`,
    ),
    check(
      "invoices_amount_only_when_paid",
      sql`${invoice.amountPaid} = 0 or ${invoice.status} = 'paid'`,
    ),
  ],
);

/** One sum of money that was booked, once for ever, for one invoice. */
export const ledgerEntries = pgTable(
  "ledger_entries",
  {
    id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    invoiceId: text("invoice_id")
      .notNull()
      .references(() => invoices.id),
    kind: text("kind", { enum: ["payment"] }).notNull(),
    amount: minorUnits("amount").notNull(),
    currency: text("currency"),
    /** The event that booked it. */
    eventId: text("event_id").notNull(),
  },
  (entry) => [
    unique("ledger_entries_once").on(entry.invoiceId, entry.kind),
    check("ledger_entries_kind", sql`${entry.kind} in ('payment')`),
    check("ledger_entries_amount", sql`${entry.amount} between 1 and 9007199254740991`),
    check("ledger_entries_currency", sql`${entry.currency} ~ '^[a-z]{3}$'`),
  ],
);

/** One message to the world, written with the business rows it speaks of. */
export const outbox = pgTable(
  "outbox",
  {
    id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    aggregateType: text("aggregate_type").notNull(),
    aggregateId: text("aggregate_id").notNull(),
    eventType: text("event_type").notNull(),
    payload: jsonb("payload").notNull(),
    createdAt: time("created_at").notNull().defaultNow(),
    /** Null while the message has not left. */
    publishedAt: time("published_at"),
    /** When what follows from it was known to have happened; null while it is not. */
    doneAt: time("done_at"),
    /** When the message may be claimed (again): the end of a lease, or of a back-off. */
    availableAt: time("available_at").notNull().defaultNow(),
    attempts: integer("attempts").notNull().default(0),
    fence: fence(),
    lastError: text("last_error"),
    parkedAt: time("parked_at"),
  },
  (message) => [
    index("outbox_unpublished")
      .on(message.aggregateType, message.aggregateId, message.id)
      .where(sql`${message.publishedAt} is null`),
    index("outbox_due")
      .on(message.availableAt)
      .where(sql`${message.publishedAt} is null and ${message.parkedAt} is null`),
    // For the age of the oldest that waits, and how many do.
    index("outbox_waiting")
      .on(message.createdAt)
      .where(sql`${message.publishedAt} is null and ${message.parkedAt} is null`),
    // For what followed from one event.
    index("outbox_aggregate_id").on(message.aggregateId),
    // For the age of the oldest that left and is not done, and how many are.
    index("outbox_not_done")
      .on(message.publishedAt)
      .where(sql`${message.publishedAt} is not null and ${message.doneAt} is null`),
    // For retention.
    index("outbox_done")
      .on(message.doneAt)
      .where(sql`${message.doneAt} is not null`),
    index("outbox_parked")
      .on(message.lastError)
      .where(sql`${message.parkedAt} is not null`),
    check(
      "outbox_done_when_published",
      sql`${message.doneAt} is null or ${message.publishedAt} is not null`,
    ),
    check(
      "outbox_published_or_parked",
      sql`${message.publishedAt} is null or ${message.parkedAt} is null`,
    ),
    check(
      "outbox_parked_has_reason",
      sql`${message.parkedAt} is null or ${message.lastError} is not null`,
    ),
    check("outbox_payload_is_an_object", sql`jsonb_typeof(${message.payload}) = 'object'`),
    check("outbox_counts", sql`${message.attempts} >= 0 and ${message.fence} >= 0`),
  ],
);

/** One call to the outside, made for one message: whether it is known to have happened. */
export const callJournal = pgTable(
  "call_journal",
  {
    /** The idempotency key that every attempt of the call carries. */
    key: text("key").primaryKey(),
    messageId: bigint("message_id", { mode: "number" }).notNull(),
    /** `calling`: it is under way, failed, or nobody knows; `parked`: a person must look. */
    state: text("state", { enum: ["calling", "done", "parked"] }).notNull(),
    attempts: integer("attempts").notNull(),
    fence: fence(),
    /**
     * When the first attempt began that may have happened: since then the other side may know the
     * key. Null: none has.
     */
    firstCalledAt: time("first_called_at"),
    /** When it may be tried again: the end of a lease, or of a back-off. */
    availableAt: time("available_at").notNull(),
    doneAt: time("done_at"),
    parkedAt: time("parked_at"),
    /** What came of it, in a word. */
    result: text("result"),
    /** An error's class or code; never its message. */
    lastError: text("last_error"),
  },
  (call) => [
    // For a person who has a message sent again.
    index("call_journal_message_id").on(call.messageId),
    index("call_journal_parked")
      .on(call.lastError)
      .where(sql`${call.state} = 'parked'`),
    index("call_journal_done")
      .on(call.doneAt)
      .where(sql`${call.state} = 'done'`),
    check("call_journal_state", sql`${call.state} in ('calling', 'done', 'parked')`),
    check(
      "call_journal_done_with_result",
      sql`(${call.state} = 'done') = (${call.doneAt} is not null)
        and (${call.state} = 'done') = (${call.result} is not null)`,
    ),
    check(
      "call_journal_parked_has_reason",
      sql`(${call.state} = 'parked') = (${call.parkedAt} is not null)
        and (${call.state} <> 'parked' or ${call.lastError} is not null)`,
    ),
    check("call_journal_counts", sql`${call.attempts} >= 0 and ${call.fence} >= 0`),
  ],
);

/** One walk through Stripe's list of events, of one account, from the newest to the oldest. */
export const sweepRuns = pgTable(
  "sweep_runs",
  {
    id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    /** `own`: the account of the key itself; else the connected account that is walked. */
    account: text("account").notNull(),
    /** The events that were created between the two. */
    windowFrom: time("window_from").notNull(),
    windowTo: time("window_to").notNull(),
    /** The oldest event seen so far, behind which the next page begins; null: none yet. */
    cursor: text("cursor"),
    pages: integer("pages").notNull().default(0),
    events: integer("events").notNull().default(0),
    /** How many of them an endpoint did not have. */
    missing: integer("missing").notNull().default(0),
    /** How many were no events that could be stored. */
    unusable: integer("unusable").notNull().default(0),
    startedAt: time("started_at").notNull().defaultNow(),
    /** When the walk may go on: the end of a lease, or of a back-off. */
    availableAt: time("available_at").notNull().defaultNow(),
    /** When the page was begun that is under way; null: nobody is at work on one. */
    claimedAt: time("claimed_at"),
    /** Failures in a row. */
    failures: integer("failures").notNull().default(0),
    fence: fence(),
    /** An error's class or code; never its message. */
    lastError: text("last_error"),
    completedAt: time("completed_at"),
  },
  (run) => [
    uniqueIndex("sweep_runs_one_under_way")
      .on(run.account)
      .where(sql`${run.completedAt} is null`),
    index("sweep_runs_complete")
      .on(run.account, run.windowTo)
      .where(sql`${run.completedAt} is not null`),
    check("sweep_runs_window", sql`${run.windowFrom} < ${run.windowTo}`),
    check(
      "sweep_runs_counts",
      sql`${run.pages} >= 0 and ${run.events} >= 0 and ${run.missing} >= 0
        and ${run.unusable} >= 0 and ${run.failures} >= 0 and ${run.fence} >= 0`,
    ),
  ],
);

/** One event that Stripe had and an endpoint had not, when a sweep found it. */
export const sweepGaps = pgTable(
  "sweep_gaps",
  {
    endpoint: text("endpoint").notNull(),
    eventId: text("event_id").notNull(),
    eventType: text("event_type").notNull(),
    /** When it was created at Stripe. Until `found_at` it was missing here. */
    createdAt: time("created_at").notNull(),
    foundAt: time("found_at").notNull().defaultNow(),
    /** The sweep that found it. */
    runId: bigint("run_id", { mode: "number" }).notNull(),
  },
  (gap) => [
    primaryKey({ columns: [gap.endpoint, gap.eventId] }),
    index("sweep_gaps_found_at").on(gap.foundAt),
  ],
);

/** One contradiction about one object that a person must settle. */
export const discrepancies = pgTable(
  "discrepancies",
  {
    id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    kind: text("kind", {
      enum: [
        "paid_after_void",
        "void_after_paid",
        "payment_mismatch",
        "missing_here",
        "missing_at_stripe",
        "status_differs",
      ],
    }).notNull(),
    objectId: text("object_id").notNull(),
    eventId: text("event_id"),
    detail: jsonb("detail").notNull(),
    foundAt: time("found_at").notNull().defaultNow(),
    resolvedAt: time("resolved_at"),
    resolution: text("resolution"),
  },
  (discrepancy) => [
    unique("discrepancies_once").on(discrepancy.kind, discrepancy.objectId),
    index("discrepancies_open")
      .on(discrepancy.kind)
      .where(sql`${discrepancy.resolvedAt} is null`),
    check(
      "discrepancies_kind",
      sql`${discrepancy.kind} in ('paid_after_void', 'void_after_paid', 'payment_mismatch', 'missing_here', 'missing_at_stripe', 'status_differs')`,
    ),
    check(
      "discrepancies_resolved_with_a_note",
      sql`(${discrepancy.resolvedAt} is null) = (${discrepancy.resolution} is null)`,
    ),
  ],
);

/** The last run of something that is to run again and again, by its name. */
export const heartbeats = pgTable("heartbeats", {
  name: text("name").primaryKey(),
  startedAt: time("started_at").notNull(),
  /** When the last run ended that did not fail; null: none has. */
  completedAt: time("completed_at"),
  /** What came of the last run that ended: counts, or the code of an error. */
  detail: jsonb("detail").notNull().default({}),
});

/**
 * What one endpoint received and settled of one type in one hour, counted when it was over. Where
 * both are empty: all of them together.
 */
export const inboxHours = pgTable(
  "inbox_hours",
  {
    /** When the hour began. */
    hour: time("hour").notNull(),
    endpoint: text("endpoint").notNull(),
    eventType: text("event_type").notNull(),
    /** Why these were ignored; empty: they were not, or not yet. */
    ignoredReason: text("ignored_reason").notNull(),
    /** In this hour for the first time. */
    received: integer("received").notNull(),
    /** Deliveries of the same events that came on top, until the hour was counted. */
    duplicates: integer("duplicates").notNull(),
    /** In this hour, whenever they were received. */
    settled: integer("settled").notNull(),
    /** From received to processed, of those processed in this hour; null: none was. */
    p50Seconds: doublePrecision("p50_seconds"),
    p95Seconds: doublePrecision("p95_seconds"),
    p99Seconds: doublePrecision("p99_seconds"),
  },
  (counted) => [
    primaryKey({
      columns: [counted.hour, counted.endpoint, counted.eventType, counted.ignoredReason],
    }),
    check(
      "inbox_hours_counts",
      sql`${counted.received} >= 0 and ${counted.duplicates} >= 0 and ${counted.settled} >= 0`,
    ),
  ],
);

/** One thing that operators are alerted of, as they were last told. */
export const alertStates = pgTable(
  "alert_states",
  {
    name: text("name").primaryKey(),
    /** Whether something was wrong, by what was told last. */
    firing: boolean("firing").notNull().default(false),
    /** How much of it: told again when it has grown. */
    level: bigint("level", { mode: "number" }).notNull().default(0),
    /** Null: nothing was told yet. */
    toldAt: time("told_at"),
    /** When it may be told (again): the end of a lease, or of a back-off. */
    availableAt: time("available_at").notNull().defaultNow(),
    /** Since it was last told. */
    attempts: integer("attempts").notNull().default(0),
    fence: fence(),
    lastError: text("last_error"),
  },
  (alert) => [
    check(
      "alert_states_counts",
      sql`${alert.level} >= 0 and ${alert.attempts} >= 0 and ${alert.fence} >= 0`,
    ),
  ],
);

/** One thing that a person did about events, messages or discrepancies. */
export const operatorActions = pgTable(
  "operator_actions",
  {
    id: bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity(),
    at: time("at").notNull().defaultNow(),
    /** Who, as they call themselves. */
    operator: text("operator").notNull(),
    /** How they came in. */
    via: text("via", { enum: ["token", "session", "cli"] }).notNull(),
    action: text("action", {
      enum: ["requeue_events", "requeue_messages", "resolve_discrepancy"],
    }).notNull(),
    /** Upon what: an id, or a reason that many share. */
    subject: text("subject").notNull(),
    why: text("why").notNull(),
    /** How many rows were changed. */
    affected: integer("affected").notNull(),
  },
  (action) => [
    index("operator_actions_subject").on(action.subject),
    check("operator_actions_via", sql`${action.via} in ('token', 'session', 'cli')`),
    check(
      "operator_actions_action",
      sql`${action.action} in ('requeue_events', 'requeue_messages', 'resolve_discrepancy')`,
    ),
    check("operator_actions_affected", sql`${action.affected} > 0`),
  ],
);
