/** What a soak came to, as a section of the report. */
import type { Query } from "../../local/audit.ts";
import type { Section } from "../report.ts";
import { auditTotals, auditWave, type Finding } from "./audit.ts";
import { countPurged, longestSettling } from "./nights.ts";
import type { Soak } from "./soak.ts";
import { type Wave, WAVE_KINDS } from "./waves.ts";
import type { Rest, Sample } from "./watch.ts";
import type { Stage } from "../stage/stage.ts";

const MEBIBYTE = 1024 * 1024;
/** By chance, as many more may be under way at a time: a leak leaves more than that behind. */
const CHANCE_SESSIONS = 8;
/** Deliveries, the closing ones before them, two ticks, retention: 20; and as many that hang. */
const MOST_SESSIONS = 40;
/** Then each disturbance had its turn several times. */
const SECONDS_FOR_ALL = 60;

/** Reads the books of the stage as they are now. */
export async function soakSection(stage: Stage, soak: Soak): Promise<Section> {
  const query: Query = (text, values) => stage.rows(text, values);
  const audited: { wave: Wave; findings: readonly Finding[] }[] = [];
  for (const wave of soak.waves) audited.push({ wave, findings: await auditWave(query, wave) });
  const totals = await auditTotals(query, soak.waves);
  const all = [...audited.flatMap(({ findings }) => findings), ...totals];

  const disturbances = Object.values(soak.disturbances);
  const rowOf = (name: string, waves: readonly Wave[], findings: readonly Finding[]) => {
    const sum = (size: (wave: Wave) => number): number =>
      waves.reduce((total, wave) => total + size(wave), 0);
    const found = (what: Finding["what"]): number =>
      new Set(findings.filter((one) => one.what === what).map(({ about }) => about)).size;
    return [
      name,
      sum(({ expected, parked }) => expected.receipts.length + parked.size),
      sum(({ deliveries }) => deliveries.first + deliveries.duplicates),
      sum(({ deliveries }) => deliveries.redeliveries),
      // They hit whatever is under way, of whatever kind.
      ...disturbances.map((count) => (name === "all" ? count : "")),
      found("lost"),
      found("doubled"),
      found("stuck"),
      found("differing"),
    ];
  };
  const rows = WAVE_KINDS.map((kind) => {
    const own = audited.filter(({ wave }) => wave.kind === kind);
    return rowOf(
      kind,
      own.map(({ wave }) => wave),
      own.flatMap(({ findings }) => findings),
    );
  });
  return {
    title: "Soak",
    columns: [
      "waves",
      "events",
      "deliveries",
      "redeliveries",
      ...Object.keys(soak.disturbances),
      "lost",
      "doubled",
      "stuck",
      "other end",
    ],
    rows: [...rows, rowOf("all", soak.waves, all)],
    notes: [
      `Seed ${soak.seed}, ${soak.seconds} s of load in ${soak.waves.length} waves, ${soak.ticks} ticks, ` +
        `${soak.nights} nights that purged ${await countPurged(stage)} payloads.`,
      `From first delivery to settled: ${(await longestSettling(stage, soak.waves)).toFixed(1)} s at most.`,
      describeSessions(soak),
      describeMemory(soak.samples),
    ],
    failures: [
      ...all.map(({ what, sentence }) => `${what}: ${sentence}`),
      ...restFailures(soak.rest),
      ...growthFailures(soak.samples),
      ...undisturbedFailures(soak),
      ...[...soak.unexplained].map(
        ([what, times]) => `Logged ${times} times, and nothing explains it: ${what}`,
      ),
    ],
  };
}

function describeSessions({ samples, rest }: Soak): string {
  const { first, last } = mostSessions(samples);
  const idle = rest.backends - rest.busy;
  const atRest = idle > 0 ? `${rest.busy}, and ${idle} that the pooler keeps` : `${rest.busy}`;
  return `Sessions of Postgres: ${first} at most in the first third, ${last} in the last; at rest ${atRest}.`;
}

function describeMemory(samples: readonly Sample[]): string {
  const sizes = samples.flatMap(({ residentBytes }) => residentBytes ?? []);
  if (sizes.length === 0) return "The memory of workerd cannot be told on this machine.";
  return `Memory of workerd: ${Math.round(Math.max(...sizes) / MEBIBYTE)} MiB at most.`;
}

function mostSessions(samples: readonly Sample[]) {
  const third = Math.ceil(samples.length / 3);
  const sessions = samples.map(({ backends }) => backends);
  return {
    first: Math.max(0, ...sessions.slice(0, third)),
    last: Math.max(0, ...sessions.slice(-third)),
  };
}

function growthFailures(samples: readonly Sample[]): string[] {
  const { first, last } = mostSessions(samples);
  return Math.max(first, last) > MOST_SESSIONS || last > first + CHANCE_SESSIONS
    ? [`Sessions of Postgres grew from ${first} to ${last} at a time.`]
    : [];
}

function restFailures({ busy, closed }: Rest): string[] {
  return [
    ...(busy > 0 ? [`${busy} sessions of Postgres are left when there is nothing to do.`] : []),
    ...(closed ? [] : ["The Worker keeps connections open when there is nothing to do."]),
  ];
}

/** What was not disturbed proves nothing. */
function undisturbedFailures({ seconds, disturbances }: Soak): string[] {
  const counts = Object.entries(disturbances);
  const never = counts.filter(([, count]) => count === 0);
  if (seconds < SECONDS_FOR_ALL && never.length < counts.length) return [];
  return never.map(([what]) => `Disturbances: no ${what}.`);
}
