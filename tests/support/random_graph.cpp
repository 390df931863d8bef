#include "support/random_graph.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace brontes::test {
namespace {

using record::Graph;
using record::ValueId;

constexpr record::ResourceId resource_count = 3;
constexpr std::uint64_t resource_elements = 48;

class Recorder {
 public:
  explicit Recorder(Random& random) : random_(random), graph_(std::uint64_t{1} << 20) {}

  Graph run() {
    for (std::uint32_t i = random_.between(1, 3); i-- > 0;) source();
    if (random_.one_in(4)) execute_so_far();
    for (std::uint32_t i = random_.between(1, 30); i-- > 0;) step();
    return std::move(graph_);
  }

 private:
  void add(const Result<ValueId>& value) {
    if (value) values_.push_back(*value);  // ops that do not fit are part of the game: nothing is recorded
  }

  ValueId any() {
    // Recent values make chains, old ones make fans.
    const auto count = static_cast<std::uint32_t>(values_.size());
    return values_[random_.one_in(2) ? random_.below(count) : count - 1 - random_.below(std::min(3u, count))];
  }

  Shape shape() {
    switch (random_.below(9)) {
      case 0: return Shape(resource_elements);
      case 1: return Shape(6, 8);
      case 2: return Shape(8);
      case 3: return Shape(6, 1);
      case 4: return Shape(8, 6);
      case 5: return Shape(1);
      case 6: return Shape(2, 3, 8);
      case 7: return Shape(random_.between(0, 300));
      default: return Shape(random_.between(0, 9), random_.between(0, 9));
    }
  }

  void source() {
    if (random_.one_in(2)) {
      const Shape s = shape();
      const std::vector<float> data(s.count());
      return add(graph_.upload(data, s));
    }
    constexpr std::array<std::array<int, 2>, 3> shapes{{{48, 1}, {6, 8}, {8, 6}}};
    const auto& dims = random_.pick(shapes);
    values_.push_back(graph_.import(Shape(dims[0], dims[1]), random_.below(resource_count)));
  }

  // Everything so far now lies in resources, at places that overlap.
  void execute_so_far() {
    for (std::uint32_t i = random_.between(0, 4); i-- > 0;) operation();
    std::vector<Graph::Residence> residences;
    for (std::size_t id = 0; id < graph_.values().size(); ++id) {
      if (graph_.values()[id].resource != record::no_resource || random_.one_in(4)) continue;
      residences.push_back(
          {static_cast<ValueId>(id), random_.below(resource_count), std::uint64_t{16} * random_.below(8)});
    }
    graph_.executed(residences);
    source();
  }

  void step() {
    switch (random_.below(16)) {
      case 0:
      case 1: return source();
      case 2:
      case 3:
      case 4: return store();
      case 5: return graph_.keep(any());
      default: return operation();
    }
  }

  void store() {
    const ValueId x = any();
    // Mostly to a resource of that very size; otherwise to the beginning of one.
    if (graph_.values()[x].bytes() > resource_elements * sizeof(float)) return;
    if (graph_.values()[x].shape.count() != resource_elements && !random_.one_in(3)) return;
    // A value of an earlier execution that was not kept cannot be stored.
    if (graph_.store(x, random_.below(resource_count), graph_.values()[x].shape)) return;
  }

  void operation() {
    using Op = record::ElementwiseOp;
    const ValueId x = any();
    const ValueId y = any();
    switch (random_.below(10)) {
      case 0:
      case 1: {
        constexpr std::array unary{Op::relu, Op::neg, Op::exp, Op::copy, Op::scale};
        return add(graph_.elementwise(random_.pick(unary), {&x, 1}, 2.0f));
      }
      case 2:
      case 3:
      case 4:
      case 5: {
        constexpr std::array binary{Op::add, Op::sub, Op::mul, Op::max};
        const ValueId inputs[] = {x, random_.one_in(6) ? x : y};
        return add(graph_.elementwise(random_.pick(binary), inputs));
      }
      case 6: return add(graph_.fill(1.0f, shape()));
      case 7: {
        const ValueId inputs[] = {x, y};
        if (random_.one_in(2)) return add(graph_.reduce(record::ReduceOp::dot, inputs));
        constexpr std::array ops{record::ReduceOp::sum, record::ReduceOp::max, record::ReduceOp::min};
        return add(graph_.reduce(random_.pick(ops), {&x, 1}));
      }
      default: return matmul(x, y);
    }
  }

  void matmul(ValueId x, ValueId y) {
    MatmulOptions options;
    options.layout = random_.one_in(2) ? Layout::kn : Layout::nk;
    constexpr std::array kernels{MatmulKernel::automatic, MatmulKernel::automatic, MatmulKernel::naive};
    options.kernel = random_.pick(kernels);
    const auto inferred = graph_.matmul(x, y, options);
    if (inferred) return add(inferred);
    // Flat views: any m, k, n whose products are the element counts.
    const std::uint64_t k = random_.between(1, 12);
    const std::uint64_t a = graph_.values()[x].shape.count();
    const std::uint64_t b = graph_.values()[y].shape.count();
    add(graph_.matmul(x, y, a / k, k, b / k, options));
  }

  Random& random_;
  Graph graph_;
  std::vector<ValueId> values_;
};

}  // namespace

plan::Traits random_traits(Random& random) {
  plan::Traits traits;
  constexpr std::array<std::uint32_t, 6> invocations{1, 2, 24, 64, 128, 1024};
  constexpr std::array<std::uint32_t, 5> shared{64, 1024, 4096, 16384, 49152};
  constexpr std::array<std::uint32_t, 3> alignments{16, 64, 256};
  constexpr std::array<std::uint64_t, 4> loops{2, 6, 60000, ~std::uint64_t{0}};
  traits.max_group_invocations = random.pick(invocations);
  traits.max_shared_bytes = random.pick(shared);
  traits.storage_alignment = random.pick(alignments);
  traits.max_loop_iterations = random.pick(loops);
  traits.subgroup_size = random.one_in(2) ? 4 : 32;
  traits.cpu = random.one_in(3);
  if (random.one_in(3)) traits.max_group_count = {random.between(2, 5), random.between(2, 5), 65535};
  return traits;
}

Graph random_graph(Random& random) { return Recorder(random).run(); }

std::uint32_t graph_count(std::uint32_t usual) {
  const char* soak = std::getenv("BRONTES_SOAK");
  return soak != nullptr && std::string_view(soak) == "1" ? 50000 : usual;
}

}  // namespace brontes::test
