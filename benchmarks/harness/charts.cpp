#include "charts.hpp"

#include "text.hpp"

#include <algorithm>
#include <cmath>
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

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return "<line class=\"" + std::string(style) + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
         number(x2) + "\" y2=\"" + number(y2) + "\"/>";
}

std::string tip(const std::string& content) { return "<title>" + escaped(content) + "</title>"; }

double largest(const BarGroup& group) {
  double most = 0;
  for (const Bar& bar : group.bars) most = std::max(most, bar.value);
  return most;
}

// From numbers to places, by their logarithms.
class LogScale {
 public:
  LogScale(double least, double most, double from, double to)
      : least_(std::floor(std::log10(least))), most_(std::ceil(std::log10(most))), from_(from), to_(to) {
    if (most_ <= least_) most_ = least_ + 1;
  }
  double at(double value) const { return from_ + (std::log10(value) - least_) / (most_ - least_) * (to_ - from_); }
  double least() const { return std::pow(10, least_); }
  double most() const { return std::pow(10, most_); }
  std::vector<double> decades() const {
    std::vector<double> all;
    for (double e = least_; e <= most_; ++e) all.push_back(std::pow(10, e));
    return all;
  }

 private:
  double least_, most_, from_, to_;
};

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

std::string roofline_chart(const std::vector<Point>& points, double bandwidth, double arithmetic) {
  if (points.empty() || bandwidth <= 0 || arithmetic <= 0) return {};
  constexpr double width = 860, height = 440, left = 60, right = 840, top = 14, bottom = 400;
  double least_x = points[0].x, most_x = points[0].x, least_y = points[0].y, most_y = arithmetic;
  for (const Point& p : points) {
    least_x = std::min(least_x, p.x);
    most_x = std::max(most_x, p.x);
    least_y = std::min(least_y, p.y);
    most_y = std::max(most_y, p.y);
  }
  const LogScale x(least_x, most_x, left, right), y(least_y, most_y, bottom, top);
  std::string body;
  for (const double decade : x.decades()) {
    body += line(x.at(decade), top, x.at(decade), bottom, "grid");
    body += text(x.at(decade), bottom + 16, format("%g", decade), "text-anchor=\"middle\"");
  }
  for (const double decade : y.decades()) {
    body += line(left, y.at(decade), right, y.at(decade), "grid");
    body += text(left - 6, y.at(decade) + 4, format("%g", decade), "text-anchor=\"end\"");
  }
  body += text((left + right) / 2, height - 6, "FLOP per byte", "text-anchor=\"middle\"");
  body += text(left, top - 4, "GFLOP/s");
  // The slope ends where the flat roof begins, and both within the picture.
  const double ridge = std::clamp(arithmetic / bandwidth, x.least(), x.most());
  const double begin = std::max(x.least(), y.least() / bandwidth);
  if (begin < ridge) body += line(x.at(begin), y.at(begin * bandwidth), x.at(ridge), y.at(ridge * bandwidth), "roof");
  if (ridge < x.most()) body += line(x.at(ridge), y.at(arithmetic), right, y.at(arithmetic), "roof");
  for (const Point& p : points) {
    body += "<circle class=\"point\" r=\"4\" cx=\"" + number(x.at(p.x)) + "\" cy=\"" + number(y.at(p.y)) + "\">" +
            tip(p.label + ": " + format("%.3g GFLOP/s", p.y) + format(" at %.3g FLOP per byte", p.x)) + "</circle>";
  }
  return svg(width, height, "roofline", body);
}

std::string history_chart(const std::vector<Step>& steps) {
  if (steps.empty()) return {};
  constexpr double width = 420, height = 70, left = 6, right = 414, top = 6, bottom = 64;
  double most = 0;
  for (const Step& step : steps) most = std::max(most, step.high);
  if (most <= 0) return {};
  const auto x = [&](std::size_t i) {
    return steps.size() == 1 ? (left + right) / 2
                             : left + (right - left) * static_cast<double>(i) / static_cast<double>(steps.size() - 1);
  };
  const auto y = [&](double value) { return bottom - value / most * (bottom - top); };
  std::string body = line(left, bottom, right, bottom, "grid"), path;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    body += line(x(i), y(steps[i].low), x(i), y(steps[i].high), "range");
    path += (i == 0 ? "M" : " L") + number(x(i)) + " " + number(y(steps[i].middle));
  }
  body += "<path class=\"curve\" d=\"" + path + "\"/>";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    body += "<circle class=\"point\" r=\"3.5\" cx=\"" + number(x(i)) + "\" cy=\"" + number(y(s.middle)) + "\">" +
            tip(s.label + ": " + format_seconds(s.middle) + ", " + format_seconds(s.low) + " to " +
                format_seconds(s.high)) +
            "</circle>";
  }
  return svg(width, height, "history", body);
}

}  // namespace brontes::bench
