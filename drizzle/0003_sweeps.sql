CREATE TABLE "sweep_gaps" (
	"endpoint" text NOT NULL,
	"event_id" text NOT NULL,
	"event_type" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"found_at" timestamp with time zone DEFAULT now() NOT NULL,
	"run_id" bigint NOT NULL,
	CONSTRAINT "sweep_gaps_endpoint_event_id_pk" PRIMARY KEY("endpoint","event_id")
);
--> statement-breakpoint
CREATE TABLE "sweep_runs" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "sweep_runs_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"account" text NOT NULL,
	"window_from" timestamp with time zone NOT NULL,
	"window_to" timestamp with time zone NOT NULL,
	"cursor" text,
	"pages" integer DEFAULT 0 NOT NULL,
	"events" integer DEFAULT 0 NOT NULL,
	"missing" integer DEFAULT 0 NOT NULL,
	"unusable" integer DEFAULT 0 NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"available_at" timestamp with time zone DEFAULT now() NOT NULL,
	"claimed_at" timestamp with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	"fence" bigint DEFAULT 0 NOT NULL,
	"last_error" text,
	"completed_at" timestamp with time zone,
	CONSTRAINT "sweep_runs_window" CHECK ("sweep_runs"."window_from" < "sweep_runs"."window_to"),
	CONSTRAINT "sweep_runs_counts" CHECK ("sweep_runs"."pages" >= 0 and "sweep_runs"."events" >= 0 and "sweep_runs"."missing" >= 0
        and "sweep_runs"."unusable" >= 0 and "sweep_runs"."failures" >= 0 and "sweep_runs"."fence" >= 0)
);
--> statement-breakpoint
CREATE INDEX "sweep_gaps_found_at" ON "sweep_gaps" USING btree ("found_at");--> statement-breakpoint
CREATE UNIQUE INDEX "sweep_runs_one_under_way" ON "sweep_runs" USING btree ("account") WHERE "sweep_runs"."completed_at" is null;--> statement-breakpoint
CREATE INDEX "sweep_runs_complete" ON "sweep_runs" USING btree ("account","window_to") WHERE "sweep_runs"."completed_at" is not null;--> statement-breakpoint
CREATE INDEX "discrepancies_open" ON "discrepancies" USING btree ("kind") WHERE "discrepancies"."resolved_at" is null;