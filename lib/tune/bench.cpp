#include "tune/bench.hpp"

#include "ops/reduce_axes.hpp"
#include "ops/store.hpp"
#include "record/elementwise.hpp"
#include "submit/transfer.hpp"

#include <algorithm>
#include <utility>

namespace brontes::tune {
namespace {

/// `record` makes a value from two imports of these shapes; it ends in resource 2.
template <class Record>
Result<plan::Plan> plan_of(const plan::Traits& traits, Shape a, Shape b, Record record) {
  record::Graph graph(traits.max_storage_range);
  const record::ValueId inputs[] = {graph.import(a, 0), graph.import(b, 1)};
  Result<record::ValueId> value = record(graph, inputs);
  if (!value) return value.error();
  if (Error e = ops::store(graph, *value, 2, graph.values()[*value].shape)) return e;
  plan::PlanOptions options;
  options.keep_marked_only = true;
  return plan::make_plan(graph, traits, options);
}

}  // namespace

Error Candidate::run(std::size_t times, double& seconds) {
  if (timestamps) {
    const auto timing = program->time(static_cast<std::uint32_t>(times));
    if (!timing) return timing.error();
    double nanoseconds = 0;
    for (const std::vector<double>& marks : timing->runs) nanoseconds += marks.empty() ? 0 : marks.back();
    seconds = std::max(nanoseconds * 1e-9 / static_cast<double>(times), 1e-9);
    return {};
  }
  const Stopwatch watch;
  for (std::size_t i = 0; i < times; ++i) {
    if (auto value = program->submit(); !value) return value.error();
  }
  if (Error e = program->wait()) return e;
  seconds = watch.seconds() / static_cast<double>(times);
  return {};
}

Error Candidate::sample(std::size_t times) {
  double seconds = 0;
  if (Error e = run(times, seconds)) return e;
  samples.push_back(seconds);
  return {};
}

bool Candidate::beats(const Candidate& other) const {
  return least(samples) * margin < least(other.samples) && median(samples) * margin < median(other.samples);
}

double least(const std::vector<double>& samples) { return *std::min_element(samples.begin(), samples.end()); }

double median(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

Result<Bench> Bench::make(std::shared_ptr<engine::Engine> engine, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  Bench bench{std::move(engine), {}};
  const auto& context = bench.engine->context();
  for (std::uint64_t count : {a, b, c}) {
    std::vector<float> data(count);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 61) / 61.0f - 0.5f;
    const std::uint64_t bytes = count * sizeof(float);
    auto memory = context->memory().allocate(context, bytes, vk::MemoryUse::device, "brontes buffer");
    if (!memory) return memory.error();
    if (Error e = submit::write(**memory, 0, data.data(), bytes)) return e;
    bench.resources.push_back(std::move(*memory));
  }
  return bench;
}

plan::MatmulProblem problem_of(const MatmulShape& shape) {
  plan::MatmulProblem problem{shape.m, shape.k, shape.n, shape.layout};
  problem.f16_inputs = shape.precision == Precision::f16;
  return problem;
}

plan::Traits Bench::traits() const {
  plan::Traits traits = engine->traits();
  traits.tuning = nullptr;
  return traits;
}

Result<plan::Plan> Bench::product(const MatmulShape& s, MatmulForce choice) const {
  plan::Traits with = traits();
  const plan::Tuning forced = plan::forcing(problem_of(s), choice, with.access);
  with.tuning = &forced;
  auto plan = plan_of(with, Shape(s.m, s.k), Shape(s.k, s.n), [&](record::Graph& graph, const record::ValueId* in) {
    return plan::matmul(graph, in[0], in[1], s.m, s.k, s.n, {1.0f, s.layout, MatmulKernel::automatic, 0, s.precision});
  });
  if (plan) plan->tuned.clear();  // they end here
  return plan;
}

Result<plan::Plan> Bench::sum(std::uint64_t count, kernels::AccessMode mode) const {
  plan::Traits with = traits();
  with.access.elementwise = mode;
  return plan_of(with, Shape(count), Shape(count), [&](record::Graph& graph, const record::ValueId* in) {
    return record::elementwise(graph, record::ElementwiseOp::add, Span<const record::ValueId>(in, 2));
  });
}

Result<plan::Plan> Bench::row_sums(std::uint64_t rows, std::uint64_t columns, kernels::AccessMode mode) const {
  plan::Traits with = traits();
  with.access.reductions = mode;
  return plan_of(with, Shape(rows, columns), Shape(1),
                 [&](record::Graph& graph, const record::ValueId* in) { return ops::sum_rows(graph, in[0]); });
}

Result<Candidate> Bench::build(plan::Plan plan, MatmulForce choice) const {
  auto program = submit::Program::create(engine->context(), std::move(plan), resources, encode::Use::often);
  if (!program) return program.error();
  return Candidate{choice, std::move(*program), {}, engine->context()->timestamp_bits() != 0};
}

}  // namespace brontes::tune
