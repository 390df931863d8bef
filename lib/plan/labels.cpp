#include "plan/labels.hpp"

#include "plan/dump.hpp"

#include <algorithm>

namespace brontes::plan {
namespace {

class Labels : Words {
 public:
  using Words::Words;

  std::vector<std::string> run() const {
    std::vector<std::string> all;
    all.reserve(plan_.dispatches.size());
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) all.push_back(label(i));
    return all;
  }

 private:
  std::string label(std::uint32_t i) const {
    const Dispatch& d = plan_.dispatches[i];
    const Group& g = group(d);
    std::string text = record::join(nodes(g), "+", [&](std::uint32_t n) { return name(node(n)); });
    const bool stores = g.root != no_node && node(g.root).output_count == 0;
    text += " " + (stores ? record::results(node(g.root)) : record::join(outputs(g), ", ", record::text_of));
    const std::vector<std::uint32_t>& passes = parts(d);
    if (passes.size() > 1) {
      const auto pass = std::find(passes.begin(), passes.end(), i) - passes.begin();
      text += " (" + std::to_string(pass + 1) + "/" + std::to_string(passes.size()) + ")";
    }
    return text;
  }
};

}  // namespace

std::vector<std::string> labels(const Plan& plan, const record::Graph& graph) { return Labels(plan, graph).run(); }

}  // namespace brontes::plan
