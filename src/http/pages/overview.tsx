/** /ops: is money flowing? Each figure with how it stands, and what came of late. */
import type { Diagrams } from "./diagrams.ts";
import type { Figures } from "../../operate/figures.ts";
import type { FigureName, Standing, StandingFigure } from "../../operate/standings.ts";
import { brief } from "../../operate/wording.ts";
import { Chart } from "./chart.tsx";
import { hrefOf } from "./links.ts";
import { number } from "../../operate/wording.ts";
import { Note, Nothing, StandingWord, Table, Time } from "./parts.tsx";

const FIGURES = {
  receiving: { title: "Events received", more: "/ops/events" },
  waiting: { title: "Waiting", more: "/ops/events?state=waiting&order=oldest" },
  needs_review: { title: "Needs review", more: "/ops/review" },
  discrepancies: { title: "Discrepancies", more: "/ops/discrepancies" },
  outbox: { title: "Messages waiting", more: "/ops/outbox" },
  sweeps: { title: "Last sweep", more: "/ops/gaps" },
  ticks: { title: "Last good tick", more: null },
  retention: { title: "Last purge", more: null },
  processing_time: { title: "Time to processed", more: null },
  duplicates: { title: "Duplicates", more: null },
  ignored: { title: "Ignored", more: "/ops/ignored" },
} as const satisfies Record<FigureName, { title: string; more: string | null }>;

export interface OverviewData {
  readonly figures: Figures;
  readonly standings: readonly StandingFigure[];
  readonly diagrams: Diagrams;
  readonly paused: boolean;
  /** When all this was true. */
  readonly now: Date;
}

export function Overview({ figures, standings, diagrams, paused, now }: OverviewData) {
  const toLookAt = paused || standings.some(({ standing }) => standing === "look");
  const inTrouble = standings.filter(({ standing }) => standing === "trouble");
  return (
    <>
      <p>
        As of <Time at={now} age={false} />. <a href="/ops">Read again</a>
      </p>
      {inTrouble.length > 0 ? (
        <Note standing="trouble">
          <strong>Somebody is needed:</strong>{" "}
          {inTrouble.map(({ name }) => FIGURES[name].title.toLowerCase()).join(", ")}.
        </Note>
      ) : (
        <Note standing={toLookAt ? "look" : "well"}>
          <strong>Nobody is needed now.</strong>{" "}
          {toLookAt
            ? "Something deserves a look when there is time."
            : "Nothing that is watched is in trouble."}
        </Note>
      )}
      {paused && (
        <Note standing="look">
          <strong>Processing is paused:</strong> events are stored and wait. Set PROCESSING to "on"
          once the cause is mended.
        </Note>
      )}
      <ul class="cards">
        {worstFirst(standings).map((figure) => (
          <Card figure={figure} />
        ))}
      </ul>
      <Reasons figures={figures} />
      <h2>Of late</h2>
      <div class="charts">
        {diagrams.map((chart) => (
          <Chart {...chart} />
        ))}
      </div>
      {figures.lastHour.truncated && (
        <Note standing="look">
          So much happened that of the last hour only the newest events are counted: what is said of
          it, here and by type, is the least there was.
        </Note>
      )}
      <Counted figures={figures} />
      <ByType figures={figures} />
    </>
  );
}

const URGENCY = { trouble: 0, look: 1, well: 2, off: 2 } as const satisfies Record<
  Standing,
  number
>;

/** Otherwise each in its place. */
function worstFirst(standings: readonly StandingFigure[]): readonly StandingFigure[] {
  return standings.toSorted((a, b) => URGENCY[a.standing] - URGENCY[b.standing]);
}

function Card({ figure: { name, standing, value, summary, todo } }: { figure: StandingFigure }) {
  const { title, more } = FIGURES[name];
  return (
    <li class={`card is-${standing}`}>
      <header>
        <h2 class="title">{more === null ? title : <a href={more}>{title}</a>}</h2>
        <StandingWord standing={standing} />
      </header>
      <p class="value">{value}</p>
      <p>{summary}</p>
      {todo !== null && (
        <p>
          <strong>To do:</strong> {todo}
        </p>
      )}
    </li>
  );
}

/** Why what waits has failed so far. */
function Reasons({ figures: { inbox } }: { figures: Figures }) {
  const failed = inbox.waitingByReason.filter(({ reason }) => reason !== null);
  if (failed.length === 0) return <></>;
  return (
    <>
      <h2>Why events wait</h2>
      <Table
        caption="Of the oldest 5,000 that wait, those that have failed"
        items={failed}
        columns={[
          {
            title: "Last attempt failed with",
            cell: ({ reason }) => (
              <a href={hrefOf("/ops/events", { state: "waiting", reason: reason ?? "" })}>
                {reason}
              </a>
            ),
          },
          { title: "Events", number: true, cell: ({ events }) => number(events) },
          { title: "Oldest", cell: ({ oldestSeconds }) => brief(oldestSeconds) },
        ]}
      />
    </>
  );
}

function Counted({ figures: { lastDay } }: { figures: Figures }) {
  return (
    <p class="faint">
      The day is counted in whole hours, up to{" "}
      {lastDay.countedUntil === null ? (
        "none yet: the first is counted when it is over"
      ) : (
        <Time at={lastDay.countedUntil} />
      )}
      .
    </p>
  );
}

interface TypeRow {
  readonly endpoint: string;
  readonly type: string;
  readonly hour: readonly [number, number, number];
  readonly day: readonly [number, number, number];
  readonly p50: number | null;
  readonly p95: number | null;
}

/** The busiest; the JSON of /ops/api/rates has all. */
const MOST_TYPES = 50;

function ByType({ figures: { lastHour, lastDay } }: { figures: Figures }) {
  const rows = new Map<string, TypeRow>();
  const none = [0, 0, 0] as const;
  for (const [when, types] of [
    ["day", lastDay.byType],
    ["hour", lastHour.byType],
  ] as const) {
    for (const { endpoint, type, received, processed, ignored } of types) {
      const key = JSON.stringify([endpoint, type]);
      const times = lastHour.processingSeconds.find((one) => one.type === type);
      const known = rows.get(key) ?? {
        endpoint,
        type,
        hour: none,
        day: none,
        p50: times?.p50 ?? null,
        p95: times?.p95 ?? null,
      };
      rows.set(key, { ...known, [when]: [received, processed, ignored] });
    }
  }
  const all = [...rows.values()].toSorted(
    (a, b) => b.hour[0] - a.hour[0] || b.day[0] - a.day[0] || a.type.localeCompare(b.type),
  );
  const shown = all.slice(0, MOST_TYPES);
  return (
    <>
      <h2>By type</h2>
      {all.length === 0 ? (
        <Nothing>
          No data yet: no event came in within the last hour, nor in the hours counted of the day.
        </Nothing>
      ) : (
        <Table
          caption="Received / processed / ignored; and from received to processed in the last hour, at all endpoints"
          items={shown}
          columns={[
            {
              title: "Type",
              cell: ({ type, endpoint }) => (
                <a href={hrefOf("/ops/events", { type, endpoint })}>{type}</a>
              ),
            },
            { title: "Endpoint", cell: ({ endpoint }) => endpoint },
            { title: "Last hour", number: true, cell: ({ hour }) => rates(hour) },
            { title: "Last day", number: true, cell: ({ day }) => rates(day) },
            { title: "Half within", number: true, cell: ({ p50 }) => timeOf(p50) },
            { title: "95 % within", number: true, cell: ({ p95 }) => timeOf(p95) },
          ]}
        />
      )}
      {all.length > shown.length && (
        <p class="faint">And {all.length - shown.length} types more.</p>
      )}
    </>
  );
}

const rates = (counts: readonly number[]): string => counts.map(number).join(" / ");
const timeOf = (seconds: number | null): string => (seconds === null ? "–" : brief(seconds));
