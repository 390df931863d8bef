#include <brontes/shadow.hpp>

#include "api/access.hpp"
#include "api/elements.hpp"
#include "api/program.hpp"
#include "plan/labels.hpp"
#include "shadow/evaluator.hpp"
#include "submit/transfer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

namespace brontes {
namespace {

using plan::Region;
using record::ValueId;
using shadow::Evaluation;
using shadow::Values;

class ShadowCheck {
 public:
  ShadowCheck(submit::Program& program, const record::Graph& graph, std::uint32_t every)
      : program_(program),
        plan_(program.plan()),
        graph_(graph),
        evaluator_(plan_, graph),
        labels_(plan::dispatch_labels(plan_, graph)),
        every_(every) {
    for (const plan::Placement& p : plan_.uploads) regions_[p.value] = {plan::arena, p.offset, p.bytes};
  }

  Result<ShadowReport> run() {
    auto before = [&](std::uint32_t dispatch) { return prepare(dispatch); };
    auto after = [&](std::uint32_t dispatch) { return check(dispatch); };
    if (Error e = program_.run_stepwise(before, after)) return e;
    report_.not_checked.assign(not_checked_.begin(), not_checked_.end());
    return std::move(report_);
  }

 private:
  // What the dispatch's group must give, before the first of its dispatches changes anything.
  Error prepare(std::uint32_t dispatch) {
    const plan::Dispatch& d = plan_.dispatches[dispatch];
    if (dispatch != evaluator_.parts(d).front() || !report_.ok || groups_++ % every_ != 0) return {};
    auto evaluation = evaluator_.evaluate(plan_.groups[d.group], [&](ValueId v) { return fetch(v); });
    if (!evaluation) return evaluation.error();
    if (!evaluation->not_checked.empty()) {
      not_checked_.insert(evaluation->not_checked);
      return {};
    }
    expected_[d.group] = std::move(*evaluation);
    return {};
  }

  Error check(std::uint32_t dispatch) {
    const plan::Dispatch& d = plan_.dispatches[dispatch];
    const bool last = dispatch == evaluator_.parts(d).back();
    for (const auto& result : evaluator_.results(dispatch)) {
      if (result.value != record::no_value) place(result.value, result.region);
    }
    const auto found = expected_.find(d.group);
    if (!last || found == expected_.end()) return {};
    const Evaluation evaluation = std::move(found->second);
    expected_.erase(found);
    bool any = false;
    for (const auto& result : evaluator_.results(dispatch)) {
      if (result.value == record::no_value || !report_.ok) continue;
      auto got = fetch(result.value);
      if (!got) return got.error();
      compare(dispatch, result.value, **got, evaluation);
      any = true;
    }
    report_.checked += any ? 1 : 0;
    return {};
  }

  // A value is where a dispatch wrote it, and so is what it is a part of.
  void place(ValueId value, const Region& region) {
    regions_[value] = region;
    const plan::Home* home = plan::Home::find(plan_.homes, value);
    if (home == nullptr || home->in == record::no_value || region.offset < home->offset) return;
    place(home->in, {region.resource, region.offset - home->offset, graph_.value(home->in).bytes()});
  }

  Result<std::optional<Values>> fetch(ValueId id) const {
    const record::Value& value = graph_.value(id);
    Region region{value.resource, value.offset, value.bytes()};
    if (value.resource == record::no_resource) {
      const auto known = regions_.find(id);
      if (known == regions_.end()) return std::optional<Values>();
      region = known->second;
    }
    vk::Allocation* memory =
        region.resource == plan::arena ? program_.arena().get() : program_.resource(region.resource).get();
    auto elements = [&](auto element, auto number) -> Result<std::optional<Values>> {
      std::vector<decltype(element)> all(value.shape.count());
      auto read = [&](void* to, std::uint64_t bytes) { return submit::read(*memory, region.offset, to, bytes); };
      if (Error e = all.empty() ? Error() : read_elements(value.dtype, Span<decltype(element)>(all), read)) return e;
      Values values;
      values.reserve(all.size());
      for (const auto x : all) values.push_back(static_cast<double>(number(x)));
      return std::optional<Values>(std::move(values));
    };
    if (is_seen_as<float>(value.dtype)) return elements(float(), [](float x) { return x; });
    const bool mask = value.dtype == DType::mask;
    return elements(std::int32_t(), [&](std::int32_t x) { return mask ? std::int32_t{x != 0} : x; });
  }

  void compare(std::uint32_t dispatch, ValueId value, const Values& got, const Evaluation& evaluation) {
    const shadow::Expected& want = evaluation.made.at(value);
    ShadowMismatch found;
    double worst = -1;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (shadow::matches(got[i], want.values[i], want.allowed[i], graph_.value(value).dtype)) continue;
      ++found.wrong;
      // NaN where there should be none is as far off as can be.
      const double off = std::fabs(got[i] - want.values[i]);
      const double badness = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
      if (badness <= worst) continue;
      worst = badness;
      found.element = i;
      found.got = got[i];
      found.expected = want.values[i];
      found.allowed = want.allowed[i];
    }
    if (found.wrong == 0) return;
    report_.ok = false;
    found.op = labels_[dispatch].op;
    found.kernel = kernels::get(plan_.dispatches[dispatch].kernel).name;
    found.dispatch = dispatch;
    found.result = record::text_of(value);
    found.elements = got.size();
    for (const auto& [operand, elements] : evaluation.operands) {
      found.inputs.push_back(describe(operand, elements, value, found.element));
    }
    report_.first = std::move(found);
  }

  ShadowInput describe(ValueId operand, const Values& elements, ValueId result, std::uint64_t at) const {
    ShadowInput input;
    input.value = record::text_of(operand);
    input.shape = graph_.value(operand).shape;
    bool first = true;
    for (double x : elements) {
      if (std::isnan(x)) {
        ++input.nans;
        continue;
      }
      input.smallest = first ? x : std::min(input.smallest, x);
      input.largest = first ? x : std::max(input.largest, x);
      first = false;
    }
    input.has_element = input.shape == graph_.value(result).shape;
    if (input.has_element) input.element = elements[at];
    return input;
  }

  submit::Program& program_;
  const plan::Plan& plan_;
  const record::Graph& graph_;
  shadow::Evaluator evaluator_;
  std::vector<plan::DispatchLabel> labels_;
  std::uint32_t every_;
  std::uint64_t groups_ = 0;
  std::map<ValueId, Region> regions_;             // of values that are in memory now
  std::map<std::uint32_t, Evaluation> expected_;  // by group, of those under way
  std::set<std::string> not_checked_;
  ShadowReport report_;
};

}  // namespace

Result<ShadowReport> Program::State::shadow_check(const ShadowOptions& options) {
  if (options.every == 0) return Error(Errc::invalid_argument, "shadow_check: one dispatch in 0");
  auto report = ShadowCheck(*program, graph, options.every).run();
  if (report) ran = true;
  return report;
}

Result<ShadowReport> Program::shadow_check(const ShadowOptions& options) {
  return guarded("shadow_check", [&]() -> Result<ShadowReport> {
    if (!state_) return Error(Errc::invalid_argument, "shadow_check: the Program has been moved from");
    return state_->shadow_check(options);
  });
}

}  // namespace brontes
