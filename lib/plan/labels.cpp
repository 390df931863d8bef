#include "plan/labels.hpp"

#include "plan/dump.hpp"

#include <algorithm>

namespace brontes::plan {
namespace {

class Labels : Words {
 public:
  using Words::Words;

  template <class Label>
  auto run(Label label) const {
    std::vector<decltype(label(*this, 0u))> all;
    all.reserve(plan_.dispatches.size());
    for (std::uint32_t i = 0; i < plan_.dispatches.size(); ++i) all.push_back(label(*this, i));
    return all;
  }

  std::string ops(std::uint32_t i) const {
    return record::join(nodes(group_of(i)), "+", [&](std::uint32_t n) { return name(node(n)); });
  }

  std::string detail(std::uint32_t i) const {
    const Group& g = group_of(i);
    const std::string more = g.root == no_node ? std::string() : record::detail(node(g.root));
    return more.empty() ? more : " " + more;
  }

  std::string results(std::uint32_t i) const {
    const Group& g = group_of(i);
    const bool stores = g.root != no_node && node(g.root).output_count == 0;
    return stores ? record::results(node(g.root)) : record::join(outputs(g), ", ", record::text_of);
  }

  /// " (2/3)" where several dispatches run the same ops.
  std::string pass(std::uint32_t i) const {
    const std::vector<std::uint32_t>& passes = parts(plan_.dispatches[i]);
    if (passes.size() == 1) return {};
    const auto pass = std::find(passes.begin(), passes.end(), i) - passes.begin();
    return " (" + std::to_string(pass + 1) + "/" + std::to_string(passes.size()) + ")";
  }

 private:
  const Group& group_of(std::uint32_t i) const { return group(plan_.dispatches[i]); }
};

}  // namespace

std::vector<std::string> labels(const Plan& plan, const record::Graph& graph) {
  return Labels(plan, graph).run([](const Labels& of, std::uint32_t i) {
    return of.ops(i) + " " + of.results(i) + of.pass(i);
  });
}

std::vector<DispatchLabel> dispatch_labels(const Plan& plan, const record::Graph& graph) {
  return Labels(plan, graph).run([](const Labels& of, std::uint32_t i) {
    return DispatchLabel{of.ops(i) + of.detail(i) + of.pass(i), of.results(i)};
  });
}

}  // namespace brontes::plan
