#include "charts.hpp"

#include "text.hpp"

#include <algorithm>
#include <cstddef>

namespace brontes::bench {
namespace {

std::string number(double value) { return format("%.1f", value); }

std::string svg(double width, double height, const std::string& what, const std::string& body) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) +
         "\" width=\"" + number(width) + "\" role=\"img\" aria-label=\"" + escaped(what) + "\">" + body + "</svg>\n";
}

std::string text(double x, double y, const std::string& content, const char* attributes = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + attributes + ">" + escaped(content) + "</text>";
}

std::string tip(const std::string& content) { return "<title>" + escaped(content) + "</title>"; }

double largest(const BarGroup& group) {
  double most = 0;
  for (const Bar& bar : group.bars) most = std::max(most, bar.value);
  return most;
}

}  // namespace

std::string escaped(const std::string& content) {
  std::string out;
  for (const char c : content) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default:
        // Control characters are no XML.
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::string bar_chart(const std::vector<BarGroup>& groups, Scale scale) {
  constexpr double width = 860, label_width = 170, value_width = 110, bar_height = 16, title_height = 24;
  double most = 0;
  for (const BarGroup& group : groups) most = std::max(most, largest(group));
  if (most <= 0) return {};
  std::string body;
  double y = 0;
  for (const BarGroup& group : groups) {
    if (scale == Scale::own) most = largest(group);
    y += title_height;
    body += text(0, y - 6, group.title, "class=\"title\"");
    for (std::size_t i = 0; i < group.bars.size(); ++i) {
      const Bar& bar = group.bars[i];
      const double length = bar.value / most * (width - label_width - value_width);
      body += text(label_width - 8, y + bar_height - 4, bar.label, "text-anchor=\"end\"");
      body += "<rect class=\"c" + std::to_string(i % 8) + "\" x=\"" + number(label_width) + "\" y=\"" + number(y + 2) +
              "\" width=\"" + number(std::max(length, 1.0)) + "\" height=\"" + number(bar_height - 4) + "\">" +
              tip(group.title + "/" + bar.label + ": " + bar.shown) + "</rect>";
      body += text(label_width + length + 6, y + bar_height - 4, bar.shown);
      y += bar_height;
    }
  }
  return svg(width, y + 6, "bars", body);
}

}  // namespace brontes::bench
