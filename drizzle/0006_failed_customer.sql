-- By hand: an index that is there already, built concurrently on a large table, is taken as it is.
CREATE INDEX IF NOT EXISTS "webhook_inbox_failed_customer" ON "webhook_inbox" USING btree (left(coalesce("payload" #>> '{data,object,customer,id}', "payload" #>> '{data,object,customer}'), 255)) WHERE "webhook_inbox"."processed_at" is null and "webhook_inbox"."last_error" is not null;--> statement-breakpoint
DROP INDEX IF EXISTS "webhook_inbox_unsettled_customer";
