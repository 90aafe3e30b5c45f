CREATE TABLE "call_journal" (
	"key" text PRIMARY KEY NOT NULL,
	"message_id" bigint NOT NULL,
	"state" text NOT NULL,
	"attempts" integer NOT NULL,
	"fence" bigint DEFAULT 0 NOT NULL,
	"first_called_at" timestamp with time zone,
	"available_at" timestamp with time zone NOT NULL,
	"done_at" timestamp with time zone,
	"parked_at" timestamp with time zone,
	"result" text,
	"last_error" text,
	CONSTRAINT "call_journal_state" CHECK ("call_journal"."state" in ('calling', 'done', 'parked')),
	CONSTRAINT "call_journal_done_with_result" CHECK (("call_journal"."state" = 'done') = ("call_journal"."done_at" is not null)
        and ("call_journal"."state" = 'done') = ("call_journal"."result" is not null)),
	CONSTRAINT "call_journal_parked_has_reason" CHECK (("call_journal"."state" = 'parked') = ("call_journal"."parked_at" is not null)
        and ("call_journal"."state" <> 'parked' or "call_journal"."last_error" is not null)),
	CONSTRAINT "call_journal_counts" CHECK ("call_journal"."attempts" >= 0 and "call_journal"."fence" >= 0)
);
--> statement-breakpoint
DROP INDEX "outbox_published";--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "done_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "call_journal_message_id" ON "call_journal" USING btree ("message_id");--> statement-breakpoint
CREATE INDEX "call_journal_parked" ON "call_journal" USING btree ("last_error") WHERE "call_journal"."state" = 'parked';--> statement-breakpoint
CREATE INDEX "call_journal_done" ON "call_journal" USING btree ("done_at") WHERE "call_journal"."state" = 'done';--> statement-breakpoint
CREATE INDEX "outbox_due" ON "outbox" USING btree ("available_at") WHERE "outbox"."published_at" is null and "outbox"."parked_at" is null;--> statement-breakpoint
CREATE INDEX "outbox_not_done" ON "outbox" USING btree ("published_at") WHERE "outbox"."published_at" is not null and "outbox"."done_at" is null;--> statement-breakpoint
CREATE INDEX "outbox_done" ON "outbox" USING btree ("done_at") WHERE "outbox"."done_at" is not null;--> statement-breakpoint
CREATE INDEX "outbox_parked" ON "outbox" USING btree ("last_error") WHERE "outbox"."parked_at" is not null;--> statement-breakpoint
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_done_when_published" CHECK ("outbox"."done_at" is null or "outbox"."published_at" is not null);