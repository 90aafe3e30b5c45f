/** Whether each control was found out, where it was, and where it should have been, as one section. */
import { isSound } from "../stage/books.ts";
import type { Control } from "./controls.ts";
import type { PathReport, Run } from "../crash/crash-points.ts";
import type { Section } from "../report.ts";
import { type Boundary, describeBoundary, sameBoundary } from "../stage/wire.ts";

export function controlSection(
  proved: readonly { readonly control: Control; readonly report: PathReport }[],
): Section {
  return {
    title: "Controls: receivers that are broken, and must be found out",
    columns: ["receiver", "boundaries", "runs", "lost", "doubled", "stuck", "where"],
    rows: proved.map(({ control, report }) => rowOf(control, report)),
    notes: proved.flatMap(({ control, report }) => describePlaces(control, report)),
    failures: proved.flatMap(({ control, report }) => failuresOf(control, report)),
  };
}

/** The undisturbed run counts as one. */
function rowOf({ finds }: Control, report: PathReport): (string | number)[] {
  const count = (what: "lost" | "doubled" | "stuck"): number =>
    report[what].length + (report.undisturbed[what].length > 0 ? 1 : 0);
  const where = placesOf(report, finds).map(([from, to]) =>
    from === to ? shortly(from) : `${shortly(from)} to ${shortly(to)}`,
  );
  return [
    report.name,
    report.boundaries,
    report.runs + 1,
    count("lost"),
    count("doubled"),
    count("stuck"),
    [...(isSound(report.undisturbed) ? [] : ["undisturbed"]), ...where].join(", "),
  ];
}

function describePlaces({ finds }: Control, report: PathReport): string[] {
  const undisturbed = report.undisturbed[finds].map(
    (row) => `undisturbed, a row of ${row.replace(/ .*$/, "")}`,
  );
  const places = placesOf(report, finds).map(([from, to]) =>
    from === to
      ? `at ${describeBoundary(from)}`
      : `from ${describeBoundary(from)}, to ${describeBoundary(to)}`,
  );
  return [...undisturbed, ...places].map((place) => `${report.name}: ${finds} ${place}`);
}

/** Boundaries that were found in a row, by the first and the last; those not tried count for none. */
function placesOf(report: PathReport, what: Control["finds"]): [from: Boundary, to: Boundary][] {
  const places: [Boundary, Boundary][] = [];
  let inside = false;
  for (const boundary of report.conversation) {
    const isHere = (run: Run): boolean => sameBoundary(run.boundary, boundary);
    if (!report.played.some(isHere)) continue;
    const last = places.at(-1);
    if (!report[what].some(isHere)) inside = false;
    else if (inside && last) last[1] = boundary;
    else {
      places.push([boundary, boundary]);
      inside = true;
    }
  }
  return places;
}

/** One sentence for each run that should have shown something and did not, or did and should not. */
export function failuresOf({ finds, mustShow }: Control, report: PathReport): string[] {
  const { undisturbed, conversation, played } = report;
  const found = new Set(report[finds].map(describeRun));
  const failures = (["lost", "doubled", "stuck", "differing"] as const)
    .filter((what) => what !== finds)
    .flatMap((what) => report[what].map((run) => `${describeRun(run)}: ${what}`));
  if (mustShow === null) {
    // The event must be settled as it should be: whoever never answers with a 2xx loses nothing yet.
    if (!isSound({ ...undisturbed, [finds]: [] })) failures.push("undisturbed, it does not settle");
    if (undisturbed[finds].length === 0) failures.push(`nothing was ${finds}, undisturbed`);
  } else {
    if (!isSound(undisturbed)) failures.push("undisturbed, it does not do what the product does");
    if (found.size === 0) failures.push(`nothing was ${finds}`);
    for (const run of played) {
      const must = mustShow(conversation, run);
      if (must === null || must === found.has(describeRun(run))) continue;
      failures.push(
        `${describeRun(run)}: ${must ? `not ${finds}, and must be` : `${finds}, and cannot be`}`,
      );
    }
  }
  return failures.map((failure) => `${report.name}: ${failure}`);
}

function describeRun({ way, boundary }: Run): string {
  return `${way} at ${describeBoundary(boundary)}`;
}

function shortly({ from, n }: Boundary): string {
  return `${from} ${n}`;
}
