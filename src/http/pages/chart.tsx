/** Charts as SVG, drawn here: bars and lines over time. What they show is in a table below each. */
import { nice, ticks } from "d3-array";
import { line } from "d3-shape";
import { utcTicks } from "d3-time";
import { number } from "../../operate/wording.ts";
import { Table } from "./parts.tsx";

export interface Series {
  readonly name: string;
  readonly as: "bars" | "line";
  /** One for each time; null: there is none. */
  readonly values: readonly (number | null)[];
}

export interface ChartData {
  readonly title: string;
  readonly unit: string;
  /** When each step began; the oldest first, a step apart. */
  readonly times: readonly Date[];
  readonly stepMs: number;
  readonly series: readonly Series[];
}

/** In the units of the drawing. */
const WIDTH = 420;
const HEIGHT = 170;
const LEFT = 44;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;
/** About as many. */
const GRID_LINES = 4;
const LABELS = 5;

export function Chart(data: ChartData) {
  const { title, unit, times, stepMs, series } = data;
  const [first] = times;
  const last = times.at(-1);
  const most = Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  if (!first || !last || most === 0) {
    return (
      <figure>
        <figcaption>{title}</figcaption>
        <p class="faint">Nothing happened yet.</p>
      </figure>
    );
  }
  const end = new Date(last.getTime() + stepMs);
  const [, top] = nice(0, most, GRID_LINES);
  const x = scale([first.getTime(), end.getTime()], [LEFT, WIDTH - RIGHT]);
  const y = scale([0, top], [HEIGHT - BOTTOM, TOP]);
  const width = Math.max(1, x(first.getTime() + stepMs) - x(first.getTime()) - 1);
  const path = line<readonly [Date, number | null]>()
    .defined(([, value]) => value !== null)
    .x(([time]) => x(time.getTime() + stepMs / 2))
    .y(([, value]) => y(value ?? 0));
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <Keys series={series} />
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${title}: the figures are in the table below`}
      >
        {ticks(0, top, GRID_LINES).map((tick) => (
          <>
            <line class="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
              {axisNumber(tick)}
            </text>
          </>
        ))}
        {utcTicks(first, end, LABELS).map((tick) => (
          <text x={x(tick.getTime())} y={HEIGHT - 6} text-anchor="middle">
            {tick.toISOString().slice(11, 16)}
          </text>
        ))}
        {series.map(({ as, values }, index) =>
          as === "bars" ? (
            times.map((time, nth) => {
              const above = y(values[nth] ?? 0);
              return (
                <rect
                  class="bar"
                  x={x(time.getTime())}
                  y={above}
                  width={width}
                  height={HEIGHT - BOTTOM - above}
                />
              );
            })
          ) : (
            <path
              class={`line line-${lineNumber(series, index)}`}
              d={path(times.map((time, nth) => [time, values[nth] ?? null])) ?? ""}
            />
          ),
        )}
      </svg>
      <details>
        <summary>The same as a table</summary>
        <Table
          caption={`${title}, in ${unit}, times in UTC`}
          columns={[
            {
              title: "From",
              cell: ({ time }) => time.toISOString().slice(0, 16).replace("T", " "),
            },
            ...series.map(({ name, values }) => ({
              title: name,
              number: true,
              cell: ({ nth }: { time: Date; nth: number }) => cellOf(values[nth] ?? null),
            })),
          ]}
          items={times.map((time, nth) => ({ time, nth }))}
        />
      </details>
    </figure>
  );
}

/** From the first range to the second. */
function scale(from: readonly [number, number], to: readonly [number, number]) {
  return (value: number): number =>
    to[0] + ((value - from[0]) / (from[1] - from[0])) * (to[1] - to[0]);
}

/** Each line has a colour and dashes of its own. */
function lineNumber(series: readonly Series[], index: number): number {
  return series.slice(0, index + 1).filter(({ as }) => as === "line").length;
}

function axisNumber(value: number): string {
  return value >= 10_000 ? `${value / 1_000}k` : String(Math.round(value * 1_000) / 1_000);
}

function cellOf(value: number | null): string {
  return value === null ? "–" : number(Math.round(value * 1_000) / 1_000);
}

function Keys({ series }: Pick<ChartData, "series">) {
  return (
    <ul class="keys">
      {series.map(({ name, as }, index) => (
        <li>
          <svg viewBox="0 0 32 14" aria-hidden="true">
            {as === "bars" ? (
              <rect class="bar" x="6" y="0" width="20" height="14" />
            ) : (
              <path class={`line line-${lineNumber(series, index)}`} d="M0 7H32" />
            )}
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}
