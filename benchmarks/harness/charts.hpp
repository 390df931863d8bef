// Charts as SVG text, for a page without scripts: colours come from its style sheet, numbers show as tooltips.
#pragma once

#include <string>
#include <vector>

namespace brontes::bench {

/// Text between tags and in attributes.
std::string escaped(const std::string& text);

struct Bar {
  std::string label;
  double value = 0;
  std::string shown;  // the value for people
};

struct BarGroup {
  std::string title;
  std::vector<Bar> bars;
};

enum class Scale { shared, own };

/// Horizontal bars from 0, all on one scale or each group on its own.
std::string bar_chart(const std::vector<BarGroup>& groups, Scale scale);

struct Point {
  double x = 0, y = 0;
  std::string label;
};

/// Attained arithmetic over arithmetic intensity, both logarithmic, under the two roofs: a memory bandwidth in GB/s and
/// a rate of arithmetic in GFLOP/s.
std::string roofline_chart(const std::vector<Point>& points, double bandwidth, double arithmetic);

struct Step {
  std::string label;
  double low = 0, middle = 0, high = 0;
};

/// A value over time with its range; small.
std::string history_chart(const std::vector<Step>& steps);

}  // namespace brontes::bench
