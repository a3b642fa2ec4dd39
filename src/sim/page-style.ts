/** The style sheet of the simulation's page, light and dark. Stage: simulate. */
export const PAGE_STYLE = `
:root { --ground: #fff; --text: #1a202c; --soft: #5b6472; --rule: #d8dee6; --own: #0b6e63; --best: #7a5af0;
  --none: #c2410c; --offered: #64748b; --admitted: #1d63c4; --shade: #fbe3da; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --text: #e5e9ee; --soft: #9aa5b1;
  --rule: #333b45; --own: #3ccbb9; --best: #b3a0ff; --none: #ff8a5c; --offered: #93a1b3; --admitted: #6fb0ff;
  --shade: #43251d; } }
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .25rem; }
a { color: inherit; } code { font-size: .9em; } .note, .unit, .tick { color: var(--soft); fill: var(--soft); }
.plant { border-left: 4px solid var(--none); padding-left: .75rem; font-weight: 600; }
.scrolled { overflow-x: auto; } .whole { white-space: nowrap; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .85rem; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--ground); }
figure { margin: .5rem 0; } svg { width: 100%; height: auto; display: block; } svg.narrow { display: none; }
@media (max-width: 36rem) { svg.wide { display: none; } svg.narrow { display: block; } }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
svg.narrow text { font-size: 13px; } svg text.title { fill: var(--text); font-weight: 600; }
.unit { font-weight: 400; } .end { text-anchor: end; } .mid { text-anchor: middle; }
.grid { stroke: var(--rule); stroke-width: .7; } .mark { stroke: var(--soft); stroke-width: .8; stroke-dasharray: 2 3; }
.objective { stroke: var(--none); stroke-width: 1.2; stroke-dasharray: 6 4; } .open { fill: var(--shade); }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.line.own { stroke: var(--own); } .line.best { stroke: var(--best); stroke-dasharray: 5 3; }
.line.none { stroke: var(--none); stroke-width: 1; } .line.offered { stroke: var(--offered); }
.line.admitted { stroke: var(--admitted); } figcaption { font-size: .8rem; color: var(--soft); }
.key { white-space: nowrap; display: inline-block; }
.key::before { content: ''; display: inline-block; width: 1.4em; height: 3px; margin: 0 .4em .2em .8em;
  background: currentcolor; }
.key.best::before { background: repeating-linear-gradient(90deg, currentcolor 0 5px, transparent 5px 8px); }
.key.own { color: var(--own); } .key.best { color: var(--best); } .key.none { color: var(--none); }
.key.offered { color: var(--offered); } .key.admitted { color: var(--admitted); }
details { margin: .75rem 0; } summary { cursor: pointer; } ol { padding-left: 0; list-style: none; font-size: .88rem; }
li { padding: .2rem 0; border-bottom: 1px solid var(--rule); }
time { display: inline-block; min-width: 4.5em; color: var(--soft); }
`;
