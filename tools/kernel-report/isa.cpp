#include "isa.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

namespace kernel_report {
namespace {

struct Line {
  std::string_view name;    // the mnemonic
  std::string_view target;  // of a branch
  std::string_view second;  // the other half of a dual instruction
};

struct Loop {
  std::size_t begin, end;  // lines [begin, end)
  bool contains(const Loop& other) const { return begin <= other.begin && other.end <= end; }
};

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  for (std::string_view prefix : prefixes) {
    if (text.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

std::string_view word_at(std::string_view text, std::size_t at) {
  const std::size_t begin = text.find_first_not_of(" \t", at);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_first_of(" \t,\r", begin) - begin);
}

// Two 16-bit multiply-adds of a packed instruction count as one: it is about instructions.
bool is_fma(std::string_view name) {
  return starts_with_any(name,
                         {"v_fma", "v_pk_fma", "v_mad_f", "v_mac_f", "v_dot", "v_dual_fma", "v_dual_dot", "v_wmma"});
}

void count(Instructions& into, std::string_view name) {
  ++into.total;
  if (is_fma(name)) ++into.fma;
  if (starts_with_any(name, {"v_"})) ++into.vector;
  if (starts_with_any(name, {"buffer_", "global_", "flat_", "scratch_", "tbuffer_"})) ++into.memory;
  if (starts_with_any(name, {"ds_"})) ++into.lds;
  if (starts_with_any(name, {"s_waitcnt"})) ++into.waits;
}

Instructions count(const std::vector<Line>& lines, const Loop& range) {
  Instructions result;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    count(result, lines[i].name);
    if (!lines[i].second.empty()) count(result, lines[i].second);
  }
  return result;
}

Instructions difference(const Instructions& a, const Instructions& b) {
  return {a.total - b.total, a.fma - b.fma, a.vector - b.vector, a.memory - b.memory, a.lds - b.lds, a.waits - b.waits};
}

}  // namespace

Isa read_isa(const std::string& assembly) {
  std::vector<Line> lines;
  std::map<std::string_view, std::size_t> labels;
  const std::string_view text = assembly;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    line = line.substr(0, line.find(';'));
    const std::string_view name = word_at(line, 0);
    if (name.empty()) continue;
    if (name.back() == ':') {
      labels[name.substr(0, name.size() - 1)] = lines.size();
      continue;
    }
    Line parsed{name, {}, {}};
    if (starts_with_any(name, {"s_branch", "s_cbranch"})) {
      parsed.target = word_at(line, static_cast<std::size_t>(name.data() - line.data()) + name.size());
    }
    if (const std::size_t dual = line.find("::"); dual != std::string_view::npos)
      parsed.second = word_at(line, dual + 2);
    lines.push_back(parsed);
  }

  // A backward branch closes a loop; several to one label are one loop.
  std::map<std::size_t, Loop> by_head;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto label = labels.find(lines[i].target);
    if (lines[i].target.empty() || label == labels.end() || label->second > i) continue;
    by_head[label->second] = {label->second, i + 1};
  }

  Isa isa;
  isa.all = count(lines, {0, lines.size()});
  const Loop* hot = nullptr;
  for (const auto& [head, loop] : by_head) {
    bool innermost = true;
    for (const auto& [other_head, other] : by_head) innermost &= head == other_head || !loop.contains(other);
    if (!innermost) continue;
    const Instructions mine = count(lines, loop);
    if (hot == nullptr || mine.fma > isa.hot_loop.fma ||
        (mine.fma == isa.hot_loop.fma && mine.total > isa.hot_loop.total)) {
      hot = &loop;
      isa.hot_loop = mine;
    }
  }
  if (hot == nullptr) return isa;
  const Loop* outermost = hot;
  for (const auto& [head, loop] : by_head) {
    if (loop.contains(*outermost)) outermost = &loop;
  }
  if (outermost != hot) isa.around_hot_loop = difference(count(lines, *outermost), isa.hot_loop);
  return isa;
}

}  // namespace kernel_report
