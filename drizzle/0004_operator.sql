-- By hand: indexes that are there already, built concurrently on a large table, are taken as they are;
-- what needs the table for itself comes last, and takes a moment; and the table is vacuumed every
-- 50,000 inserts, which the schema says.
CREATE TABLE "alert_states" (
	"name" text PRIMARY KEY NOT NULL,
	"firing" boolean DEFAULT false NOT NULL,
	"level" bigint DEFAULT 0 NOT NULL,
	"told_at" timestamp with time zone,
	"available_at" timestamp with time zone DEFAULT now() NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"fence" bigint DEFAULT 0 NOT NULL,
	"last_error" text,
	CONSTRAINT "alert_states_counts" CHECK ("alert_states"."level" >= 0 and "alert_states"."attempts" >= 0 and "alert_states"."fence" >= 0)
);
--> statement-breakpoint
CREATE TABLE "heartbeats" (
	"name" text PRIMARY KEY NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"completed_at" timestamp with time zone,
	"detail" jsonb DEFAULT '{}'::jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "inbox_hours" (
	"hour" timestamp with time zone NOT NULL,
	"endpoint" text NOT NULL,
	"event_type" text NOT NULL,
	"ignored_reason" text NOT NULL,
	"received" integer NOT NULL,
	"duplicates" integer NOT NULL,
	"settled" integer NOT NULL,
	"p50_seconds" double precision,
	"p95_seconds" double precision,
	"p99_seconds" double precision,
	CONSTRAINT "inbox_hours_hour_endpoint_event_type_ignored_reason_pk" PRIMARY KEY("hour","endpoint","event_type","ignored_reason"),
	CONSTRAINT "inbox_hours_counts" CHECK ("inbox_hours"."received" >= 0 and "inbox_hours"."duplicates" >= 0 and "inbox_hours"."settled" >= 0)
);
--> statement-breakpoint
CREATE TABLE "operator_actions" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "operator_actions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"operator" text NOT NULL,
	"via" text NOT NULL,
	"action" text NOT NULL,
	"subject" text NOT NULL,
	"why" text NOT NULL,
	"affected" integer NOT NULL,
	CONSTRAINT "operator_actions_via" CHECK ("operator_actions"."via" in ('token', 'session', 'cli')),
	CONSTRAINT "operator_actions_action" CHECK ("operator_actions"."action" in ('requeue_events', 'requeue_messages', 'resolve_discrepancy')),
	CONSTRAINT "operator_actions_affected" CHECK ("operator_actions"."affected" > 0)
);
--> statement-breakpoint
CREATE INDEX "operator_actions_subject" ON "operator_actions" USING btree ("subject");
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "invoices_customer_id" ON "invoices" USING btree (left("customer_id", 255));
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "outbox_waiting" ON "outbox" USING btree ("created_at") WHERE "outbox"."published_at" is null and "outbox"."parked_at" is null;
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "outbox_aggregate_id" ON "outbox" USING btree ("aggregate_id");
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "webhook_inbox_needs_review" ON "webhook_inbox" USING btree ("last_error","received_at") WHERE "webhook_inbox"."parked_at" is not null;
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "webhook_inbox_ignored" ON "webhook_inbox" USING btree ("ignored_reason","received_at") WHERE "webhook_inbox"."outcome" = 'ignored' and "webhook_inbox"."payload" is not null;
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "webhook_inbox_received" ON "webhook_inbox" USING btree ("received_at");
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "webhook_inbox_streams" ON "webhook_inbox" USING btree ("endpoint","event_type","received_at");
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "webhook_inbox_unsettled_customer" ON "webhook_inbox" USING btree (left(coalesce("payload" #>> '{data,object,customer,id}', "payload" #>> '{data,object,customer}'), 255)) WHERE "webhook_inbox"."processed_at" is null;
--> statement-breakpoint
DROP INDEX "webhook_inbox_parked";
--> statement-breakpoint
DROP INDEX "webhook_inbox_received_at";
--> statement-breakpoint
ALTER TABLE "webhook_inbox" SET (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 50000);
