// A report as one page with nothing from the network, well-formed enough for an XML parser. Tables and bars are there
// without scripts; the roofline and the histories are drawn by uPlot (vendor/uplot), which is part of the page.
#include "charts.hpp"
#include "counts.hpp"
#include "formats.hpp"
#include "gate.hpp"
#include "text.hpp"

#include <brontes_bench_page.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brontes::bench {
namespace {

using Json = nlohmann::ordered_json;

const char style[] = R"(
:root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --faint: #d0d7de; --mute: #57606a;
  --c0: #0969da; --c1: #bc4c00; --c2: #1a7f37; --c3: #8250df; --c4: #9a6700; --c5: #cf222e;
  --c6: #116e8a; --c7: #57606a; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --back: #0d1117; --faint: #30363d; --mute: #8b949e;
  --c0: #58a6ff; --c1: #f0883e; --c2: #56d364; --c3: #bc8cff; --c4: #e3b341; --c5: #ff7b72;
  --c6: #39c5cf; --c7: #8b949e; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 900px;
  margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; }
table { border-collapse: collapse; } td, th { padding: 2px 10px 2px 0; text-align: left; vertical-align: top; }
.scroll { overflow-x: auto; } .number { text-align: right; white-space: nowrap; } .note { color: var(--mute); }
tr { border-bottom: 1px solid var(--faint); } pre { overflow-x: auto; }
.worse { color: var(--c5); } .better { color: var(--c2); }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--text); }
svg .title { font-weight: 600; }
.chart { min-height: 260px; margin-bottom: 1em; } .u-title { font-size: 15px; text-align: left; } .hidden { display: none; }
.u-legend { text-align: left; font-size: 13px; } .u-select { background: var(--mute); opacity: 0.2; }
.tip { display: none; position: absolute; z-index: 1; pointer-events: none; white-space: nowrap; padding: 2px 6px;
  font-size: 12px; color: var(--text); background: var(--back); border: 1px solid var(--mute); border-radius: 4px; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); }
.c3 { fill: var(--c3); } .c4 { fill: var(--c4); } .c5 { fill: var(--c5); } .c6 { fill: var(--c6); }
.c7 { fill: var(--c7); }
)";

std::string tag(const char* name, const std::string& content) {
  return "<" + std::string(name) + ">" + escaped(content) + "</" + name + ">";
}

// A heading and what is below it; nothing where there is nothing.
void section(std::ostream& out, const char* title, const std::string& note, const std::string& body) {
  if (body.empty()) return;
  std::string id;
  for (const char c : std::string_view(title)) id += c == ' ' || c == '/' ? '-' : c;
  out << "<section id=\"" << escaped(id) << "\">" << tag("h2", title);
  if (!note.empty()) out << "<p class=\"note\">" << escaped(note) << "</p>";
  out << "<div class=\"scroll\">" << body << "</div></section>\n";
}

std::string facts(const Provenance& p) {
  std::string rows;
  auto row = [&](const char* what, const std::string& value) {
    if (!value.empty()) rows += "<tr>" + tag("th", what) + tag("td", value) + "</tr>";
  };
  row("commit", p.commit);
  row("date", p.date);
  row("device", p.device.name);
  row("driver", p.device.driver);
  row("build", p.build.type + ", " + p.build.compiler);
  row("machine", p.machine.cpu + ", " + std::to_string(p.machine.cpus) + " CPUs, " + p.machine.simd);
  if (p.limits.known()) {
    row("limit", format("%.4g GFLOP/s, ", p.limits.flops * 1e-9) + format("%.3g GB/s, ", p.limits.bytes * 1e-9) +
                     (p.limits.source == "host" ? "by multiply-adds and triad on all CPUs"
                                                : "by the fastest kernels of the library"));
  }
  for (const std::string& warning : p.warnings) row("warning", warning);
  return "<table>" + rows + "</table>";
}

// Bars for the cases that `value` gives something for, by group.
template <class Value>
std::string bars(const Report& report, Scale scale, Value value) {
  std::vector<BarGroup> groups;
  for (const CaseResult& c : report.cases) {
    Bar bar = value(c);
    if (bar.value <= 0) continue;
    bar.label = variant_of(c.name);
    const std::string group = group_of(c.name);
    if (groups.empty() || groups.back().title != group) groups.push_back({group, {}});
    groups.back().bars.push_back(std::move(bar));
  }
  return bar_chart(groups, scale);
}

Json roofline(const Report& report) {
  Json points = Json::array();
  const Limits& limits = report.provenance.limits;
  for (const CaseResult& c : report.cases) {
    if (c.bytes <= 0 || c.flops <= 0 || !limits.known()) continue;
    points.push_back({{"x", c.flops / c.bytes},
                      {"y", c.gigaflops()},
                      {"name", c.name},
                      {"variant", variant_of(c.name)},
                      {"share", c.share_of(limits)}});
  }
  return {{"bandwidth", limits.bytes * 1e-9}, {"arithmetic", limits.flops * 1e-9}, {"points", std::move(points)}};
}

std::string when(const Provenance& p) { return p.commit.empty() ? p.date : p.commit.substr(0, 12) + " " + p.date; }

// What a case took in each file; null where a file does not have it.
Json history_of(const std::string& name, const std::vector<Report>& reports) {
  Json low = Json::array(), middle = Json::array(), high = Json::array();
  for (const Report& report : reports) {
    const CaseResult* c = report.find(name);
    if (c == nullptr) {
      for (Json* values : {&low, &middle, &high}) values->push_back(nullptr);
      continue;
    }
    double most = 0;
    for (const Run& run : c->runs) most = std::max(most, run.median);
    low.push_back(c->minimum());
    middle.push_back(c->median());
    high.push_back(most);
  }
  return {
      {"name", variant_of(name)}, {"low", std::move(low)}, {"middle", std::move(middle)}, {"high", std::move(high)}};
}

// By group, for the cases of the last report.
Json history(const std::vector<Report>& reports) {
  Json groups = Json::array();
  if (reports.size() < 2) return groups;
  for (const CaseResult& c : reports.back().cases) {
    const std::string group = group_of(c.name);
    if (groups.empty() || groups.back()["name"] != group) {
      groups.push_back({{"name", group}, {"variants", Json::array()}});
    }
    groups.back()["variants"].push_back(history_of(c.name, reports));
  }
  return groups;
}

// Text for a script element that neither HTML nor XML takes for markup.
std::string harmless(const Json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

// Where the script draws.
std::string chart(const std::string& which) { return "<div class=\"chart\" data-chart=\"" + which + "\"></div>\n"; }

std::string script(std::string_view text) { return "<script>//<![CDATA[\n" + std::string(text) + "\n//]]></script>\n"; }

std::string count_changes(const std::vector<Report>& reports) {
  std::string rows;
  for (std::size_t i = 1; i < reports.size(); ++i) {
    for (const CaseChange& c : difference_of(reports[i - 1], reports[i], 1).cases) {
      for (const CountChange& count : c.counts) {
        rows += "<tr>" + tag("td", when(reports[i].provenance)) + tag("td", c.name) + tag("td", count.name) +
                "<td class=\"number " + (count.grew() ? "worse" : "better") + "\">" + std::to_string(count.old) +
                " to " + std::to_string(count.now) + "</td></tr>";
      }
      if (c.lines.empty()) continue;
      std::string lines;
      for (const std::string& line : c.lines) lines += line + "\n";
      rows += "<tr><td></td><td colspan=\"3\">" + tag("pre", lines) + "</td></tr>";
    }
  }
  return rows.empty() ? "" : "<table>" + rows + "</table>";
}

std::string all_cases(const Report& report) {
  std::string rows = "<tr>";
  for (const char* head : {"case", "median", "min", "err", "GB/s", "GFLOP/s", "of limit", "counts"})
    rows += tag("th", head);
  rows += "</tr>";
  auto cell = [](const std::string& value) { return "<td class=\"number\">" + escaped(value) + "</td>"; };
  for (const CaseResult& c : report.cases) {
    const double share = c.share_of(report.provenance.limits);
    rows += "<tr>" + tag("td", c.name) + cell(format_seconds(c.median())) + cell(format_seconds(c.minimum())) +
            cell(format("%.0f%%", c.error() * 100)) +
            cell(c.bytes > 0 ? format("%.2f", c.gigabytes_per_second()) : "") +
            cell(c.flops > 0 ? format("%.2f", c.gigaflops()) : "") +
            cell(share > 0 ? format("%.0f%%", share * 100) : "") + "<td>";
    for (const auto& [name, value] : c.all_counts()) {
      if (value == 0) continue;
      rows += "<span title=\"" + escaped(meaning_of(name)) + "\">" + escaped(name) + " " + std::to_string(value) +
              "</span>; ";
    }
    rows += "</td></tr>";
  }
  return report.cases.empty() ? "" : "<table>" + rows + "</table>";
}

std::string ratios(const Report& report) {
  std::string rows;
  for (const Ratio& r : report.ratios) {
    rows += "<tr>" + tag("td", r.group) + tag("td", r.variant + " over " + r.baseline) + "<td class=\"number\">" +
            format("%.3g", r.by_median) + "x (" + format("%.3g", r.by_minimum) + "x)</td>" +
            tag("td", r.goal > 0 ? format("goal %.3g", r.goal) + (r.met() ? ", met" : ", missed") : "") + "</tr>";
  }
  return rows.empty() ? "" : "<table>" + rows + "</table>";
}

}  // namespace

void write_html(std::ostream& out, const std::vector<Report>& reports) {
  const Report& report = reports.back();
  const Json roofs = roofline(report), histories = history(reports);
  std::string history_charts;
  for (std::size_t i = 0; i < histories.size(); ++i) history_charts += chart(std::to_string(i));
  const std::string needs_scripts = "<noscript><p class=\"note\">Drawn by a script of this page.</p></noscript>";

  out << "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>"
         "<meta name=\"viewport\" content=\"width=device-width\"/><title>brontes-bench</title><style>"
      << page::uplot_style << style << "</style></head><body>\n<h1>Benchmarks</h1>\n"
      << facts(report.provenance) << "\n";
  section(out, "Counts that changed", "From each file to the next. Counts do not jitter: what grew is a regression.",
          count_changes(reports));
  section(
      out, "Roofline",
      "Arithmetic by what there is to do for a byte, below the limits that were measured in the same run. What is "
      "above the slope came from caches, or only read. Drag to zoom, click twice to go back, click a name to hide it.",
      roofs["points"].empty() ? "" : chart("roofline") + needs_scripts);
  section(out, "GFLOP/s by shape and variant", "", bars(report, Scale::shared, [](const CaseResult& c) {
            // Arithmetic that is one op per element says less than the bytes do.
            if (c.flops <= c.bytes / 4) return Bar{};
            return Bar{"", c.gigaflops(), format("%.3g GFLOP/s", c.gigaflops())};
          }));
  section(out, "Cost of chains and of dispatches", "Time of an item. Each group has a scale of its own.",
          bars(report, Scale::own, [](const CaseResult& c) {
            const bool chain = c.suite == "chain" || c.suite == "dispatch" || c.suite == "raw";
            if (!chain) return Bar{};
            return Bar{"", c.median() / c.items, format_seconds(c.median() / c.items) + "/" + c.item};
          }));
  section(out, "Ratios", "How many times as fast, by medians (by minima).", ratios(report));
  section(out, "History", "Medians, and from the fastest epoch to the slowest run. Drag to zoom.",
          history_charts.empty() ? "" : history_charts + needs_scripts);
  section(out, "All cases", "", all_cases(report));

  Json files = Json::array();
  for (const Report& each : reports) files.push_back(when(each.provenance));
  out << "<script type=\"application/json\" id=\"data\">"
      << harmless({{"roofline", roofs}, {"history", histories}, {"files", files}}) << "</script>\n"
      << script("/*\n" + std::string(page::uplot_licence) + "*/\n" + std::string(page::uplot)) << script(page::script)
      << "</body></html>\n";
}

}  // namespace brontes::bench
