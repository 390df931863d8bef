"""Usage: check_formats.py BRONTES_BENCH [--browser]

Writes a short run in every format and has the programs read it that it is meant for, as far as they are installed:
Google Benchmark's compare.py and pyperf. What is not is named, and the structure is checked.

With --browser the page is opened in Chromium, light and dark, and nothing else is checked. Exit status 77 without it.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

program = sys.argv[1]
problems = []
SVG = "{http://www.w3.org/2000/svg}"


def expect(condition, message):
    if not condition:
        problems.append(message)


def run(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=240)


def python_with(module):
    """A Python that has the module: this one, or the system's, which is where packages go."""
    for python in (sys.executable, "/usr/bin/python3"):
        if pathlib.Path(python).exists() and run(python, "-c", f"import {module}").returncode == 0:
            return python
    return None


def check_google(path):
    entries = json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    for entry in entries:
        for key in ("name", "run_name", "run_type", "iterations", "real_time", "cpu_time", "time_unit"):
            expect(key in entry, f"--google: no {key}")
    tool = pathlib.Path("/usr/share/benchmark/compare.py")
    python = python_with("scipy")
    if not tool.exists() or python is None:
        print("check_formats: compare.py not run: libbenchmark-tools or python3-scipy is not installed")
        return
    done = run(python, tool, "--no-color", "benchmarks", path, path)
    expect(done.returncode == 0, f"compare.py cannot read it: {done.stdout}")
    for entry in entries:
        expect(entry["name"] in done.stdout, f"compare.py does not list {entry['name']}")


def check_pyperf(path):
    benchmarks = json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    expect(benchmarks and all(b["runs"][0]["values"] for b in benchmarks), "--pyperf: no values")
    python = python_with("pyperf")
    if python is None:
        print("check_formats: pyperf not run: it is not installed")
        return
    done = run(python, "-m", "pyperf", "stats", path)
    expect(done.returncode == 0, f"pyperf cannot read it: {done.stdout}")


def check_page(path, names):
    text = path.read_text(encoding="utf-8")
    page = xml.etree.ElementTree.fromstring(text)
    headings = [heading.text for heading in page.iter("{http://www.w3.org/1999/xhtml}h2")]
    for wanted in ("Counts that changed", "Roofline", "GFLOP/s by shape and variant",
                   "Cost of chains and of dispatches", "Ratios", "History", "All cases"):
        expect(wanted in headings, f"--html: no {wanted}")
    expect("prefers-color-scheme: dark" in text, "--html: nothing for the dark")
    for fetch in (" src=", " href=", "url(", "@import", "import(", "fetch(", "XMLHttpRequest"):
        expect(fetch not in text, f"--html: not self-contained, it has {fetch}")
    expect("uPlot" in text and "The MIT License (MIT)" in text and "Leon Sorokin" in text,
           "--html: the chart library or its licence is missing")
    scripts = {element.get("id"): element.text for element in page.iter("{http://www.w3.org/1999/xhtml}script")}
    data = json.loads(scripts["data"])
    expect({point["name"] for point in data["roofline"]["points"]} <= set(names) and data["roofline"]["points"],
           "--html: the roofline has other cases")
    expect(data["roofline"]["bandwidth"] > 0 and data["roofline"]["arithmetic"] > 0, "--html: no roofs")
    shown = {f"{group['name']}/{v['name']}" for group in data["history"] for v in group["variants"]}
    expect(shown == set(names) and len(data["files"]) == 2, "--html: the history has other cases")
    expect(all(name in text for name in names), "--html: a case is missing")
    tips = [tip.text for tip in page.iter(SVG + "title")]
    expect(any(name in tip for tip in tips for name in names), "--html: no tooltips")


def check_in_browser(path, names, folder):
    text = path.read_text(encoding="utf-8")
    charts = text.count(' data-chart="')
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
               "--window-size=1000,1400", f"--user-data-dir={folder / 'profile'}")
    sizes = {}
    for scheme in ("light", "dark"):
        picture = folder / f"{scheme}.png"
        dark = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
        done = run("chromium", *options, *dark, "--virtual-time-budget=5000", f"--screenshot={picture}", path.as_uri())
        expect(picture.exists(), f"chromium makes no picture ({scheme}): {done.stdout}")
        sizes[scheme] = picture.read_bytes() if picture.exists() else b""
    expect(len(sizes["light"]) > 10_000, "the page is empty")
    expect(sizes["light"] != sizes["dark"], "the page looks the same in the dark")
    # What the browser made of it: every case is there after parsing, and every chart has a place.
    # Tall, so that all charts are in view, which is when they are drawn.
    tall = [option for option in options if not option.startswith("--window-size")]
    done = subprocess.run(["chromium", *tall, "--window-size=1000,20000", "--virtual-time-budget=5000",
                           "--enable-logging=stderr", "--dump-dom", path.as_uri()], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=240)
    expect(all(name in done.stdout for name in names), "chromium lost something")
    expect(f'data-charts="{charts}"' in done.stdout, "the page's script did not run to its end")
    expect(done.stdout.count("<canvas") == charts, f"{done.stdout.count('<canvas')} charts are drawn, not {charts}")
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    expect(not complaints, f"the browser complains: {complaints}")


in_browser = "--browser" in sys.argv[2:]
if in_browser and not shutil.which("chromium"):
    print("skipped: there is no chromium")
    sys.exit(77)

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    files = {kind: folder / f"{kind}.out" for kind in ("json", "google", "github", "bencher", "pyperf", "csv")}
    arguments = [word for kind, path in files.items() for word in (f"--{kind}", path)]
    done = run(program, "--quick", "--repeat", 3,
               "--filter", "^(chain/relu-scale-add/1000|raw/one-op|matmul/64x64x64/nk)/", *arguments)
    expect(done.returncode == 0, f"exit status {done.returncode}: {done.stdout}")
    report = json.loads(files["json"].read_text(encoding="utf-8"))
    names = [case["name"] for case in report["cases"]]
    expect(len(names) >= 8, f"only {names}")
    expect(all(len(line) <= 100 for line in done.stdout.splitlines()), "a line is longer than 100 columns")

    check_google(files["google"])
    check_pyperf(files["pyperf"])
    github = json.loads(files["github"].read_text(encoding="utf-8"))
    expect([entry["name"] for entry in github] == names, "--github: other cases")
    expect(all(isinstance(e["value"], float) and e["unit"] == "ns" for e in github), "--github: no values")
    bencher = json.loads(files["bencher"].read_text(encoding="utf-8"))
    expect(list(bencher) == names, "--bencher: other cases")
    expect(all("value" in entry["latency"] for entry in bencher.values()), "--bencher: no latency")
    expect(len(files["csv"].read_text(encoding="utf-8").splitlines()) >= len(names), "--csv: too few lines")

    # The same from the file, with another one before it that has a dispatch less.
    report["cases"][0]["counts"]["dispatches"] -= 1
    older, page = folder / "older.json", folder / "page.html"
    older.write_text(json.dumps(report), encoding="utf-8")
    again = folder / "again.out"
    done = run(program, "report", older, files["json"], "--html", page, "--google", again)
    expect(done.returncode == 0, f"report: exit status {done.returncode}: {done.stdout}")
    expect(again.read_bytes() == files["google"].read_bytes(), "report writes another file than the run did")
    if in_browser:
        check_in_browser(page, names, folder)
    else:
        check_page(page, names)

    for arguments in (["report", older, "--json", "-", "--google", "-"], ["report", older, "--html", "no-such/x.html"]):
        done = run(program, *arguments)
        expect(done.returncode == 2, f"{arguments}: exit status {done.returncode}, expected 2")

for problem in problems:
    print(f"check_formats: {problem}", file=sys.stderr)
sys.exit(1 if problems else 0)
