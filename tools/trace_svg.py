#!/usr/bin/env python3
"""Draws a trace of Device::stop_trace() as SVG, for documents.

Usage: trace_svg.py [--run N] TRACE > PICTURE

  --run N  begins with the submit of run N, counted from 0, and ends before the next one
"""
import argparse
import html
import json
import sys

WIDTH, LEFT, ROW, TOP = 960, 90, 22, 30
COLOURS = {"record": "#9aa5b1", "plan": "#7c5cbf", "encode": "#3f7fbf", "write": "#5a9fa8", "submit": "#2f9e62",
           "wait": "#c9a227", "read": "#c0653a", "device": "#b5485d"}
# Light text on every one of them; the rest follows the reader's theme.
STYLE = """
  text { font: 11px sans-serif; fill: #24292f; }
  text.in { fill: #ffffff; }
  rect.row { fill: #f3f4f6; }
  line { stroke: #c4c9d0; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ed; }
    rect.row { fill: #22272e; }
    line { stroke: #4a525c; }
  }
"""


def rows_of(spans):
    """Spans by track, with how deep each lies in others."""
    tracks = {}
    for span in spans:
        track = tracks.setdefault((span["pid"], span["tid"]), {"spans": [], "open": [], "depth": 1})
        while track["open"] and track["open"][-1] <= span["ts"] + 0.0015:
            track["open"].pop()
        track["spans"].append((span, len(track["open"])))
        track["open"].append(span["ts"] + span["dur"])
        track["depth"] = max(track["depth"], len(track["open"]))
    return dict(sorted(tracks.items()))


def one_run(spans, run):
    """From a submit up to the next."""
    submits = [e["ts"] for e in spans if e["cat"] == "submit"] + [float("inf")]
    return [e for e in spans if submits[run] <= e["ts"] < submits[run + 1]]


def draw(trace, run):
    events = trace["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    spans = [e for e in events if e["ph"] == "X"]
    if run is not None:
        spans = one_run(spans, run)
    begin = min(e["ts"] for e in spans)
    end = max(e["ts"] + e["dur"] for e in spans)
    scale = (WIDTH - LEFT - 10) / (end - begin)
    tracks = rows_of(spans)
    height = TOP + sum(t["depth"] * ROW + 10 for t in tracks.values()) + 24
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
           f'height="{height}" role="img">\n<style>{STYLE}</style>\n')
    for step in range(5):
        at = LEFT + (WIDTH - LEFT - 10) * step / 4
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{height - 24}"/>\n'
        anchor = "end" if step == 4 else "middle"
        time = (end - begin) * step / 4 / 1000
        yield f'<text x="{at:.1f}" y="{TOP - 14}" text-anchor="{anchor}">{time:.2f} ms</text>\n'
    top = TOP
    for (pid, tid), track in tracks.items():
        tall = track["depth"] * ROW
        label = names.get((pid, tid), "") if pid == 1 else "device"
        yield f'<rect class="row" x="{LEFT}" y="{top}" width="{WIDTH - LEFT - 10}" height="{tall}"/>\n'
        yield f'<text x="6" y="{top + 15}">{html.escape("host" if pid == 1 and len(tracks) == 2 else label)}</text>\n'
        for span, depth in track["spans"]:
            x, wide = LEFT + (span["ts"] - begin) * scale, max(span["dur"] * scale, 0.6)
            y = top + depth * ROW
            text = html.escape(span["name"])
            colour = COLOURS.get(span["cat"], "#888888")
            yield (f'<rect x="{x:.2f}" y="{y + 1}" width="{wide:.2f}" height="{ROW - 2}" fill="{colour}">'
                   f'<title>{text}: {span["dur"]:.1f} us</title></rect>\n')
            room = int((wide - 6) / 6)
            if room >= 3:
                shown = span["name"] if len(span["name"]) <= room else span["name"][:room - 1] + "…"
                yield f'<text class="in" x="{x + 3:.2f}" y="{y + 15}">{html.escape(shown)}</text>\n'
        top += tall + 10
    x = LEFT
    for category, colour in COLOURS.items():
        if not any(e["cat"] == category for e in spans):
            continue
        yield f'<rect x="{x}" y="{height - 18}" width="10" height="10" fill="{colour}"/>\n'
        yield f'<text x="{x + 14}" y="{height - 9}">{category}</text>\n'
        x += 30 + 7 * len(category)
    clock = html.escape(trace["otherData"]["clock"])
    yield f'<desc>{html.escape(processes.get(2, ""))}; clock: {clock}</desc>\n</svg>\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--run", type=int)
    parser.add_argument("trace")
    arguments = parser.parse_args()
    with open(arguments.trace, encoding="utf-8") as file:
        sys.stdout.writelines(draw(json.load(file), arguments.run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
