CREATE TABLE "discrepancies" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "discrepancies_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kind" text NOT NULL,
	"object_id" text NOT NULL,
	"event_id" text,
	"detail" jsonb NOT NULL,
	"found_at" timestamp with time zone DEFAULT now() NOT NULL,
	"resolved_at" timestamp with time zone,
	"resolution" text,
	CONSTRAINT "discrepancies_once" UNIQUE("kind","object_id"),
	CONSTRAINT "discrepancies_kind" CHECK ("discrepancies"."kind" in ('paid_after_void', 'void_after_paid', 'payment_mismatch', 'missing_here', 'missing_at_stripe', 'status_differs')),
	CONSTRAINT "discrepancies_resolved_with_a_note" CHECK (("discrepancies"."resolved_at" is null) = ("discrepancies"."resolution" is null))
);
--> statement-breakpoint
CREATE TABLE "invoices" (
	"id" text PRIMARY KEY NOT NULL,
	"customer_id" text,
	"status" text NOT NULL,
	"currency" text,
	"amount_paid" bigint DEFAULT 0 NOT NULL,
	"paid_at" timestamp with time zone,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "invoices_status" CHECK ("invoices"."status" in ('draft', 'open', 'paid', 'void', 'uncollectible')),
	CONSTRAINT "invoices_currency" CHECK ("invoices"."currency" ~ '^[a-z]{3}$'),
	CONSTRAINT "invoices_amount_paid" CHECK ("invoices"."amount_paid" between 0 and 9007199254740991),
	CONSTRAINT "invoices_paid_at_when_paid" CHECK (("invoices"."paid_at" is not null) = ("invoices"."status" = 'paid')),
	CONSTRAINT "invoices_amount_only_when_paid" CHECK ("invoices"."amount_paid" = 0 or "invoices"."status" = 'paid')
);
--> statement-breakpoint
CREATE TABLE "ledger_entries" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "ledger_entries_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"invoice_id" text NOT NULL,
	"kind" text NOT NULL,
	"amount" bigint NOT NULL,
	"currency" text,
	"event_id" text NOT NULL,
	CONSTRAINT "ledger_entries_once" UNIQUE("invoice_id","kind"),
	CONSTRAINT "ledger_entries_kind" CHECK ("ledger_entries"."kind" in ('payment')),
	CONSTRAINT "ledger_entries_amount" CHECK ("ledger_entries"."amount" between 1 and 9007199254740991),
	CONSTRAINT "ledger_entries_currency" CHECK ("ledger_entries"."currency" ~ '^[a-z]{3}$')
);
--> statement-breakpoint
CREATE TABLE "outbox" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "outbox_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"aggregate_type" text NOT NULL,
	"aggregate_id" text NOT NULL,
	"event_type" text NOT NULL,
	"payload" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"published_at" timestamp with time zone,
	"available_at" timestamp with time zone DEFAULT now() NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"fence" bigint DEFAULT 0 NOT NULL,
	"last_error" text,
	"parked_at" timestamp with time zone,
	CONSTRAINT "outbox_published_or_parked" CHECK ("outbox"."published_at" is null or "outbox"."parked_at" is null),
	CONSTRAINT "outbox_parked_has_reason" CHECK ("outbox"."parked_at" is null or "outbox"."last_error" is not null),
	CONSTRAINT "outbox_payload_is_an_object" CHECK (jsonb_typeof("outbox"."payload") = 'object'),
	CONSTRAINT "outbox_counts" CHECK ("outbox"."attempts" >= 0 and "outbox"."fence" >= 0)
);
--> statement-breakpoint
CREATE TABLE "webhook_inbox" (
	"provider" text DEFAULT 'stripe' NOT NULL,
	"endpoint" text NOT NULL,
	"event_id" text NOT NULL,
	"event_type" text NOT NULL,
	"object_id" text,
	"payload" jsonb,
	"received_at" timestamp with time zone DEFAULT now() NOT NULL,
	"available_at" timestamp with time zone DEFAULT now() NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"fence" bigint DEFAULT 0 NOT NULL,
	"last_error" text,
	"processed_at" timestamp with time zone,
	"outcome" text,
	"ignored_reason" text,
	"parked_at" timestamp with time zone,
	"payload_altered" boolean DEFAULT false NOT NULL,
	"duplicates" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "webhook_inbox_provider_endpoint_event_id_pk" PRIMARY KEY("provider","endpoint","event_id"),
	CONSTRAINT "webhook_inbox_settled_or_parked" CHECK ("webhook_inbox"."processed_at" is null or "webhook_inbox"."parked_at" is null),
	CONSTRAINT "webhook_inbox_outcome_when_settled" CHECK (("webhook_inbox"."outcome" is null) = ("webhook_inbox"."processed_at" is null)),
	CONSTRAINT "webhook_inbox_outcome" CHECK ("webhook_inbox"."outcome" in ('processed', 'ignored')),
	CONSTRAINT "webhook_inbox_ignored_reason_when_ignored" CHECK (("webhook_inbox"."ignored_reason" is not null) = ("webhook_inbox"."outcome" is not null and "webhook_inbox"."outcome" = 'ignored')),
	CONSTRAINT "webhook_inbox_ignored_reason" CHECK ("webhook_inbox"."ignored_reason" in ('no_handler', 'livemode', 'account', 'test_id', 'thin')),
	CONSTRAINT "webhook_inbox_parked_has_reason" CHECK ("webhook_inbox"."parked_at" is null or "webhook_inbox"."last_error" is not null),
	CONSTRAINT "webhook_inbox_purged_only_when_settled" CHECK ("webhook_inbox"."payload" is not null or "webhook_inbox"."processed_at" is not null),
	CONSTRAINT "webhook_inbox_payload_is_an_object" CHECK ("webhook_inbox"."payload" is null or jsonb_typeof("webhook_inbox"."payload") = 'object'),
	CONSTRAINT "webhook_inbox_counts" CHECK ("webhook_inbox"."attempts" >= 0 and "webhook_inbox"."fence" >= 0 and "webhook_inbox"."duplicates" >= 0)
);
--> statement-breakpoint
ALTER TABLE "ledger_entries" ADD CONSTRAINT "ledger_entries_invoice_id_invoices_id_fk" FOREIGN KEY ("invoice_id") REFERENCES "public"."invoices"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "outbox_unpublished" ON "outbox" USING btree ("aggregate_type","aggregate_id","id") WHERE "outbox"."published_at" is null;--> statement-breakpoint
CREATE INDEX "webhook_inbox_due" ON "webhook_inbox" USING btree ("available_at") WHERE "webhook_inbox"."processed_at" is null and "webhook_inbox"."parked_at" is null;--> statement-breakpoint
CREATE INDEX "webhook_inbox_object_id" ON "webhook_inbox" USING btree ("object_id");--> statement-breakpoint
CREATE INDEX "webhook_inbox_received_at" ON "webhook_inbox" USING brin ("received_at");