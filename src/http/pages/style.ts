/** The one style sheet: no script, no font and no image comes with it. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f5f6f8; --line: #d5d9e0; --ink: #1a1f27; --faint: #555e6b;
  --link: #0b57b7; --focus: #0b57b7;
  --well: #12693a; --look: #7d5200; --trouble: #b01c1c; --off: #555e6b;
  --well-ground: #e7f5ec; --look-ground: #fdf3d8; --trouble-ground: #fdeaea; --off-ground: #eef0f3;
  --bar: #a9b8cf; --graph: #0b57b7; --graph-2: #a04a00; --graph-3: #7b2d8e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171c; --raised: #1d2229; --line: #39414d; --ink: #e6e9ee; --faint: #a5aebb;
    --link: #86b7ff; --focus: #86b7ff;
    --well: #7fd6a2; --look: #f0c35a; --trouble: #ff9c95; --off: #a5aebb;
    --well-ground: #14291d; --look-ground: #2f2712; --trouble-ground: #361a1a; --off-ground: #22272e;
    --bar: #4a5a75; --graph: #86b7ff; --graph-2: #f5a35c; --graph-3: #d99bea;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere;
}
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
h1 { font-size: 1.5rem; margin: 0 0 .75rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; }
p { margin: .5rem 0; max-width: 46rem; }
code, .id { unicode-bidi: isolate; }
code, pre, .id { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .875em; }
.skip, .away { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--ground); padding: .25rem .5rem; z-index: 1; }
.top { background: var(--raised); border-bottom: 1px solid var(--line); padding: .5rem 1rem; }
.top > div, main { max-width: 80rem; margin: 0 auto; }
.who { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: center; justify-content: space-between; }
.who form { display: inline-flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 0 .25rem; margin: .25rem 0 0; padding: 0; }
nav a { display: inline-block; padding: .35rem .6rem; border-radius: .35rem; text-decoration: none; }
nav a[aria-current] { background: var(--ground); color: var(--ink); font-weight: 600; box-shadow: inset 0 0 0 1px var(--line); }
main { padding: 1.25rem 1rem 4rem; }
.faint { color: var(--faint); }
.nowrap { white-space: nowrap; }
.reading { max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem; }
.reading:has(~ main) { display: none; }

.standing { font-weight: 600; white-space: nowrap; }
.well { color: var(--well); } .look { color: var(--look); } .trouble { color: var(--trouble); } .off { color: var(--off); }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: .75rem; padding: 0; margin: 0; list-style: none; }
.card { background: var(--raised); border: 1px solid var(--line); border-left: .35rem solid var(--off); border-radius: .4rem; padding: .6rem .8rem; }
.card.is-well { border-left-color: var(--well); } .card.is-look { border-left-color: var(--look); } .card.is-trouble { border-left-color: var(--trouble); }
.card h2 { font-size: 1rem; margin: 0; }
.card header { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .5rem; }
.card .value { font-size: 1.2rem; font-weight: 600; margin: .1rem 0; }
.card p { margin: .2rem 0; font-size: .9375rem; }
.note { border: 1px solid var(--line); border-left: .35rem solid var(--off); border-radius: .4rem; padding: .5rem .8rem; margin: 0 0 1rem; background: var(--off-ground); max-width: 60rem; }
.note.is-well { border-left-color: var(--well); background: var(--well-ground); }
.note.is-look { border-left-color: var(--look); background: var(--look-ground); }
.note.is-trouble { border-left-color: var(--trouble); background: var(--trouble-ground); }

.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; }
caption { text-align: left; color: var(--faint); padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid var(--line); }
td { min-width: 8rem; max-width: 28rem; }
td time { white-space: normal; }
th { font-weight: 600; white-space: nowrap; }
td a { display: inline-block; padding: .1rem 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; min-width: 4rem; }
dl { display: grid; grid-template-columns: minmax(8rem, 14rem) 1fr; gap: .25rem 1rem; margin: .5rem 0; }
td ul { margin: 0; padding-left: 1rem; }
dt { color: var(--faint); } dd { margin: 0; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: .4rem; padding: .75rem; overflow: auto; max-height: 70vh; overflow-wrap: normal; }
details > summary { cursor: pointer; padding: .25rem 0; }

label { display: block; font-weight: 600; }
input, select, textarea, button {
  font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--faint); border-radius: .35rem;
  padding: .4rem .55rem; max-width: 100%;
}
input, select, textarea { width: 100%; }
::placeholder { color: var(--faint); opacity: 1; }
label select, label input, label textarea { font-weight: 400; }
button { background: var(--raised); cursor: pointer; }
button.main { background: var(--link); border-color: var(--link); color: var(--ground); font-weight: 600; padding: .5rem 1rem; }
.top button { padding: .2rem .55rem; }
.filters { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 9.5rem), 1fr)); gap: .6rem; align-items: end; margin: .5rem 0 1rem; }
.form { max-width: 36rem; display: grid; gap: .9rem; }
.choices, .pages { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: .75rem 0; padding: 0; list-style: none; }
.choices [aria-current] { font-weight: 600; color: var(--ink); text-decoration: none; }
.hint { font-weight: 400; color: var(--faint); font-size: .9rem; }

.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1rem 1.5rem; }
figure { margin: 0; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--faint); font-size: 11px; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .bar { fill: var(--bar); }
svg .line-1 { stroke: var(--graph); } svg .line-2 { stroke: var(--graph-2); } svg .line-3 { stroke: var(--graph-3); }
svg .line { fill: none; stroke-width: 2; }
svg .line-2 { stroke-dasharray: 6 3; } svg .line-3 { stroke-dasharray: 2 3; }
.keys { display: flex; flex-wrap: wrap; gap: 0 1rem; margin: .15rem 0; padding: 0; list-style: none; font-size: .875rem; color: var(--faint); }
.keys svg { display: inline-block; width: 1.6rem; height: .7rem; margin-right: .35rem; }

@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
  .stack thead { position: absolute; left: -100rem; }
  .stack tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .stack td { display: block; border: 0; padding: .1rem 0; max-width: none; text-align: left; }
  .stack td[data-label]::before { content: attr(data-label) ": "; color: var(--faint); }
}
`;
