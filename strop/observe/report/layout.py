"""Layout of all pages, and the script that shows a chart's values on hover."""

from __future__ import annotations

# of a page that is one file: it loads nothing and runs nothing
ONE_FILE_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
"""
STYLE = """
:root {
  color-scheme: light dark;
  --paper: #faf9f6; --card: #ffffff; --ink: #201e1b; --soft: #6f6a61; --hair: #e6e2d9;
  --accent: #a8501c; --strong: #0c7a6b; --good: #1c7f4a; --bad: #b23a31; --code: #f4f1ea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #151412; --card: #1d1b19; --ink: #ece8e0; --soft: #9c958a; --hair: #322f2a;
    --accent: #f09a5f; --strong: #4ecbb6; --good: #5fcb8d; --bad: #f0827a; --code: #24211e;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink); font-variant-numeric: tabular-nums;
  font: 15px/1.5 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1120px; margin: 0 auto; padding: 40px 24px 72px; }
h1 { font-size: 26px; line-height: 1.2; letter-spacing: -0.015em; margin: 2px 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 17px; letter-spacing: -0.005em; margin: 44px 0 4px; }
h3 { font-size: 13px; font-weight: 600; margin: 0; }
p { margin: 0; }
.soft { color: var(--soft); }
.eyebrow { color: var(--accent); font-size: 12px; font-weight: 600; letter-spacing: 0.08em; text-transform: uppercase; }
.lead { color: var(--soft); margin-bottom: 14px; max-width: 72ch; font-size: 14px; }
.card { background: var(--card); border: 1px solid var(--hair); border-radius: 10px; }
.state { border: 1px solid var(--hair); border-radius: 99px; padding: 1px 9px; font-size: 12px; white-space: nowrap; }
.hero { display: grid; grid-template-columns: minmax(280px, 5fr) 7fr; margin-top: 24px; }
.gain { padding: 20px 24px; border-right: 1px solid var(--hair); }
.gain .numbers { font-size: 38px; font-weight: 650; letter-spacing: -0.03em; line-height: 1.15; margin: 4px 0 2px; }
.gain .from { color: var(--soft); font-weight: 450; }
.gain .to { color: var(--strong); }
.track { position: relative; height: 6px; border-radius: 3px; background: var(--hair); margin: 18px 0 6px; }
.track > * { position: absolute; top: 0; height: 100%; border-radius: 3px; }
.track .span { background: var(--strong); opacity: 0.25; top: -4px; height: 14px; }
.track .way { background: var(--strong); }
.track .way.down { background: var(--bad); }
.track .mark { width: 12px; height: 12px; border-radius: 50%; top: -3px; margin-left: -6px; }
.track .mark { border: 2.5px solid var(--soft); background: var(--card); }
.track .mark.end { border-color: var(--strong); background: var(--strong); }
.scale { display: flex; justify-content: space-between; font-size: 11px; color: var(--soft); }
.facts { display: grid; grid-template-columns: repeat(4, 1fr); margin: 0; align-content: center; padding: 12px 8px; }
.facts div { padding: 10px 12px; }
.facts dt { color: var(--soft); font-size: 12px; white-space: nowrap; }
.facts dd { margin: 0; font-size: 19px; font-weight: 600; letter-spacing: -0.01em; white-space: nowrap; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 14px; margin-top: 14px; }
figure { margin: 0; padding: 12px 12px 6px; min-width: 0; }
figcaption { display: flex; gap: 8px; justify-content: space-between; align-items: baseline; padding: 0 4px 2px; }
figcaption output { font-size: 12.5px; font-weight: 600; white-space: nowrap; text-align: right; }
figure p { padding: 0 4px; font-size: 12px; color: var(--soft); margin-bottom: 6px; min-height: 18px; }
svg.chart { display: block; width: 100%; height: auto; touch-action: pan-y; cursor: crosshair; --line: var(--accent); }
svg.strong { --line: var(--strong); }
svg text { font-size: 10.5px; fill: var(--soft); }
.grid { stroke: var(--hair); stroke-width: 1; }
.curve { fill: none; stroke: var(--line); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.raw { fill: none; stroke: var(--line); stroke-width: 1; opacity: 0.3; }
.band { fill: var(--line); opacity: 0.16; }
.point { fill: var(--line); }
.dot { fill: var(--line); stroke: var(--card); stroke-width: 2; }
.cursor { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 3; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 14px 20px; }
.columns { align-items: start; }
.columns > section > h3 { margin: 8px 0 10px; color: var(--soft); font-weight: 500; }
.rollout { padding: 14px 16px; margin-bottom: 14px; overflow: hidden; }
.rollout header { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; margin-bottom: 8px; }
.rollout header { font-size: 12px; }
.rollout header .task { color: var(--soft); margin-left: auto; }
.reward { font-weight: 600; border-radius: 6px; padding: 1px 8px; border: 1px solid currentColor; }
.reward.right { color: var(--good); }
.reward.wrong { color: var(--bad); }
.reward.partly { color: var(--accent); }
.turn { display: grid; grid-template-columns: 74px 1fr; gap: 10px; padding: 5px 0; }
.turn b { font-size: 11.5px; font-weight: 600; color: var(--soft); padding-top: 2px; }
.turn pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
pre { font: 13px/1.5 ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace; }
.turn.assistant b { color: var(--strong); }
.turn.tool b, .turn.env b { color: var(--accent); }
.turn .think { color: var(--soft); }
.answer { font-size: 12px; color: var(--soft); border-top: 1px solid var(--hair); margin-top: 8px; padding-top: 8px; }
.answer code { color: var(--ink); overflow-wrap: anywhere; }
.fates { padding: 16px 20px; }
.stack { display: flex; height: 12px; border-radius: 6px; overflow: hidden; gap: 2px; margin-bottom: 12px; }
.legend { display: flex; flex-wrap: wrap; gap: 6px 26px; font-size: 14px; }
.legend i, .stack i { background: var(--fate); }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 7px; }
.trained { --fate: var(--strong); } .gated { --fate: var(--accent); }
.waiting { --fate: var(--soft); } .failed { --fate: var(--bad); }
.warning { color: var(--bad); margin-bottom: 10px; font-size: 14px; }
.shares { border-collapse: collapse; width: 100%; font-size: 14px; }
.shares th { color: var(--soft); font-weight: 450; font-size: 12px; }
.shares th, .shares td { text-align: right; padding: 3px 14px 3px 0; white-space: nowrap; }
.shares td:first-child { text-align: left; }
.shares .bars { width: 60%; padding-right: 0; }
.bars i { display: block; height: 5px; border-radius: 3px; margin: 2px 0; background: var(--fate); }
details { margin-top: 32px; }
summary { cursor: pointer; font-weight: 600; font-size: 15px; }
details pre { background: var(--code); border-radius: 10px; padding: 16px; overflow: auto; font-size: 12.5px; }
footer { margin-top: 48px; color: var(--soft); font-size: 12.5px; }
@media (max-width: 760px) {
  main { padding: 24px 14px 48px; }
  .hero { grid-template-columns: 1fr; }
  .gain { border-right: 0; border-bottom: 1px solid var(--hair); padding: 18px; }
  .facts { grid-template-columns: repeat(2, 1fr); padding: 8px 2px; }
  .charts, .columns { grid-template-columns: 1fr; }
  .turn { grid-template-columns: 1fr; gap: 0; }
}
@media print { .cursor { display: none; } .card, figure, .rollout { break-inside: avoid; } }
"""

# every chart follows the one under the pointer, at the point nearest to it
SCRIPT = """
function show(chart, x) {
  const last = chart.points[chart.points.length - 1];
  const distance = point => Math.abs(point[0] - x);
  const near = x === null ? last : chart.points.reduce((a, b) => distance(b) < distance(a) ? b : a);
  chart.dot.setAttribute('cx', near[0]); chart.dot.setAttribute('cy', near[1]);
  chart.cursor.setAttribute('x1', near[0]); chart.cursor.setAttribute('x2', near[0]);
  chart.cursor.style.visibility = x === null ? 'hidden' : 'visible';
  chart.out.textContent = near[3];
  chart.note.textContent = x === null ? chart.words : near[2];
}
function readOut() {
  const charts = [...document.querySelectorAll('svg.chart')].map(svg => ({
    svg, points: JSON.parse(svg.dataset.points), out: svg.parentElement.querySelector('output'),
    note: svg.parentElement.querySelector('p'), words: svg.parentElement.querySelector('p').textContent,
    dot: svg.querySelector('.dot'), cursor: svg.querySelector('.cursor'),
  }));
  for (const chart of charts) {
    show(chart, null);
    chart.svg.addEventListener('pointermove', event => {
      const box = chart.svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * chart.svg.viewBox.baseVal.width;
      charts.forEach(other => show(other, x));
    });
    chart.svg.addEventListener('pointerleave', () => charts.forEach(other => show(other, null)));
  }
}
readOut();
"""
