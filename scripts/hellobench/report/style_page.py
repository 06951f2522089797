# SPDX-License-Identifier: MIT
"""The page's style and its one script. Both stand in the page as they are: no <, no & in them."""

CSS = """
:root{--ink:#1b1f24;--muted:#5b6470;--line:#dfe3e8;--paper:#fff;--soft:#f5f7f9;--accent:#0a63c9;
--tint:#eaf2fc;--bar:#dbe7f6;--bad:#b3261e;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaed;--muted:#9aa3af;--line:#2c323a;
--paper:#15181c;--soft:#1c2026;--accent:#6db3ff;--tint:#16263a;--bar:#1f3550;--bad:#ff8a80}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:84rem;padding:3rem 2rem 6rem;background:var(--paper);
color:var(--ink);font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Ubuntu,
"Liberation Sans","DejaVu Sans",sans-serif;overflow-wrap:break-word}
header>p,section>p,section>ul{max-width:46rem}
.kicker{margin:0;color:var(--muted);font-size:.8rem;letter-spacing:.08em;text-transform:uppercase}
.kicker span{margin-left:1em;letter-spacing:0}
h1{margin:.3rem 0 1rem;font-size:clamp(1.6rem,4.5vw,2.4rem);line-height:1.15;
letter-spacing:-.02em;font-weight:700;text-wrap:balance}
.about{font-size:1.12rem;color:var(--muted);margin-top:0}
.result{font-size:1.12rem;font-weight:600}
.caution{border-left:3px solid var(--bad);padding-left:.9rem;color:var(--muted)}
h2{margin:3.5rem 0 1rem;padding-top:1.2rem;border-top:2px solid var(--ink);font-size:1.35rem;
line-height:1.25;letter-spacing:-.01em}
h3{margin:2rem 0 .5rem;font-size:1rem}
a{color:var(--accent);text-decoration-thickness:1px;text-underline-offset:.2em}
code{font:.9em/1.5 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;
background:var(--soft);padding:.1em .35em;border-radius:.25em}
pre{background:var(--soft);padding:1rem;border-radius:.5rem;max-width:none;line-height:1.5}
pre code{padding:0;background:none}
nav ol{display:flex;flex-wrap:wrap;gap:.35rem .5rem;margin:1.8rem 0 0;padding:0;list-style:none}
nav a{display:block;padding:.2rem .7rem;border:1px solid var(--line);border-radius:2rem;
font-size:.85rem;color:var(--ink);text-decoration:none}
nav a:hover{border-color:var(--accent);color:var(--accent)}
.scroll{overflow-x:auto;max-width:100%}
.scroll:focus-visible{outline:2px solid var(--accent);outline-offset:3px}
table{border-collapse:separate;border-spacing:0;min-width:100%;margin:.75rem 0 1.5rem;
font-size:.86rem;line-height:1.35;font-variant-numeric:tabular-nums}
th,td{padding:.42rem .7rem;border-bottom:1px solid var(--line);vertical-align:baseline;
font-weight:400;white-space:nowrap}
thead th{vertical-align:bottom;color:var(--muted);font-size:.78rem;white-space:normal;
min-width:4.2em;border-bottom:1.5px solid var(--ink)}
.left{text-align:left}
.right{text-align:right}
tbody th{position:sticky;left:0;background:var(--paper);z-index:1}
tbody tr:hover>*{background-color:var(--soft)}
.strong{font-weight:600}
.dim,.note,.failed th{color:var(--muted)}
.note{white-space:normal;min-width:24em;font-style:italic}
.bad{color:var(--bad);font-weight:600}
td.article,.article td{color:var(--muted)}
tr.article>*{border-bottom-color:transparent;padding-bottom:0}
.baseline>*{background-color:var(--tint)}
.baseline th{color:var(--accent)}
.bar{background-image:linear-gradient(var(--bar),var(--bar));background-repeat:no-repeat;
background-size:var(--share) 100%;min-width:14.5em}
td a{color:inherit;text-decoration-color:var(--line)}
td a:hover{color:var(--accent)}
.left.long{white-space:normal;min-width:17em}
thead button{all:unset;cursor:pointer;display:inline-block}
thead button:hover,[aria-sort] button{color:var(--ink)}
thead button:focus-visible{outline:2px solid var(--accent)}
thead button::after{content:"\\2195";opacity:.35;margin-left:.3em}
[aria-sort=ascending] button::after{content:"\\2191";opacity:1}
[aria-sort=descending] button::after{content:"\\2193";opacity:1}
#environment table,#environment th,#environment td{min-width:0;white-space:normal}
#environment td:first-child{color:var(--muted)}
figure{margin:2rem 0 2.5rem}
figcaption{margin-top:.4rem;color:var(--muted);font-size:.86rem;max-width:46rem}
.plot{display:block;width:100%;max-width:calc(1.45*var(--w));min-width:calc(1.05*var(--w));
height:auto}
.plot text{font-family:inherit!important}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
details{margin:.6rem 0}
summary{cursor:pointer;padding:.3rem 0}
@media (max-width:40rem){body{padding:1.5rem 1rem 4rem}th,td{padding:.4rem .5rem}
.bar{min-width:13em}tbody th{max-width:9.5em;white-space:normal}}
@media print{@page{size:A4 landscape;margin:12mm}:root{color-scheme:light}body{padding:0;
max-width:none;font-size:9pt}nav{display:none}.scroll{overflow:visible}table,thead th{font-size:7pt}
th,td{padding:.2rem .3rem}tr,figure{break-inside:avoid}h2{break-after:avoid}.bar{min-width:0}
.plot{min-width:0;max-width:100%}thead button::after{content:""}*{print-color-adjust:exact}}
"""

# Values that aren't known stay last, whichever way a table is sorted. Texts are compared as texts.
SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, column) => {
    const data = row.cells[column]?.dataset ?? {};
    return "n" in data ? Number(data.n) : data.t ?? null;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const down = head.ariaSort === "ascending" ? -1 : 1;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
      const order = (a, b) => {
        const x = value(a, column), y = value(b, column);
        if (x === null || y === null) return (x === null) - (y === null);
        return down * (typeof x === "string" ? x.localeCompare(y) : x - y);
      };
      body.append(...[...body.rows].sort(order));
    };
  });
}
"""
