// Bars as SVG text, which need no scripts: colours come from the style sheet of the page, numbers show as tooltips.
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

}  // namespace brontes::bench
