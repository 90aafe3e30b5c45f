/** The reports of disturbed paths as one section. */
import type { Finding, PathReport } from "./crash-points.ts";
import type { Section } from "../report.ts";
import type { Recovery } from "../stage/settle.ts";
import { describeBoundary } from "../stage/wire.ts";

export function crashSection(title: string, reports: readonly PathReport[]): Section {
  const rows = reports.map((report) => [
    report.name,
    report.boundaries,
    report.runs,
    report.lost.length,
    report.doubled.length,
    report.stuck.length,
    report.differing.length,
    describeRecovery(report.longest),
  ]);
  const sum = (column: number): number =>
    rows.reduce((total, row) => total + Number(row[column]), 0);
  return {
    title,
    columns: [
      "path",
      "boundaries",
      "runs",
      "lost",
      "doubled",
      "stuck",
      "other end",
      "longest recovery",
    ],
    rows: [...rows, ["all", sum(1), sum(2), sum(3), sum(4), sum(5), sum(6), ""]],
    notes: [],
    failures: reports.flatMap((report) => [
      ...(report.boundaries === 0 || report.runs === 0
        ? [`${report.name}: nothing was disturbed`]
        : []),
      ...report.wrongEnds.map((end) => `${report.name}: undisturbed, ${end}`),
      ...(["lost", "doubled", "stuck", "differing"] as const).flatMap((what) =>
        report[what].map((finding) => describeFinding(report.name, what, finding)),
      ),
    ]),
  };
}

/** Leases and back-offs are not waited for, so that their length is told and not measured. */
function describeRecovery({ deliveries, ticks, waitSeconds }: Recovery): string {
  const steps = [counted(deliveries, "delivery", "deliveries"), counted(ticks, "tick", "ticks")];
  const taken = steps.filter((step) => step !== "").join(", ");
  if (taken === "") return "nothing needed";
  return waitSeconds >= 1 ? `${taken} after ${Math.ceil(waitSeconds)} s` : taken;
}

function counted(count: number, one: string, more: string): string {
  return count === 0 ? "" : `${count} ${count === 1 ? one : more}`;
}

function describeFinding(
  path: string,
  what: "lost" | "doubled" | "stuck" | "differing",
  { way, boundary, verdict }: Finding,
): string {
  return `${path}: ${way} at ${describeBoundary(boundary)}: ${what} ${verdict[what].join("; ")}`;
}
