// Specialized modules: valid, small, and without branches on constants.
#include "spirv/specialize.hpp"

#include "spirv/words.hpp"
#include "support/spirv_interpreter.hpp"
#include "support/spirv_validator.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace brontes;

namespace {

using Words = std::vector<std::uint32_t>;
using Named = std::map<std::string, std::uint32_t>;

constexpr std::uint32_t op_count = 0
#define BRONTES_OP(name, code, arity, scalars, types, formula) +1
#include "elementwise.def"
#undef BRONTES_OP
    ;

enum ElementwiseCode : std::uint32_t {
#define BRONTES_OP(name, code, arity, scalars, types, formula) code_##name = code,
#include "elementwise.def"
#undef BRONTES_OP
};

std::uint32_t step(std::uint32_t op, std::uint32_t x = 0, std::uint32_t y = 0) { return op | x << 8 | y << 16; }

// Every kernel in every access mode it has, each as if that were its only one.
const std::vector<kernels::Kernel>& all_kernels() {
  static std::deque<Words> modules;
  static const std::vector<kernels::Kernel> kernels = [] {
    std::vector<kernels::Kernel> all;
    for (std::size_t i = 0; i < kernels::count; ++i) {
      const kernels::Kernel& kernel = kernels::get(static_cast<kernels::Id>(i));
      for (std::size_t mode = 0; mode < kernels::access_modes; ++mode) {
        if (kernel.modules[mode].size == 0) continue;
        const Words& words = modules.emplace_back(spirv::words(kernel, static_cast<kernels::AccessMode>(mode)));
        all.push_back(kernel);
        all.back().modules[0] = {words.data(), words.size()};
      }
    }
    return all;
  }();
  return kernels;
}

// The kernel with its default constants but for these. A name it does not have is passed over.
Words specialized(const kernels::Kernel& kernel, const Named& chosen) {
  Words values;
  for (const kernels::SpecConstant& c : kernel.constants) {
    const auto found = chosen.find(c.name);
    values.push_back(found == chosen.end() ? c.default_bits : found->second);
  }
  return spirv::specialize(kernel, {values.data(), values.size()});
}

std::string described(const kernels::Kernel& kernel, const Named& chosen) {
  std::string text = kernel.name;
  for (const auto& [name, value] : chosen) text += " " + name + "=" + std::to_string(value);
  return text;
}

bool is_step(const kernels::SpecConstant& c) {
  const std::string name = c.name;
  return name.size() == 5 && name.compare(0, 4, "step") == 0;
}

// What a constant may be, by its name.
std::vector<std::uint32_t> choices(const kernels::SpecConstant& c) {
  const std::string name = c.name;
  if (name == "group_size") return {1, 16, 64, 256};
  if (name == "vectors") return {1, 2, 8};
  if (name == "tiles") return {1, 8};
  if (name == "pair" || name == "b_layout") return {0, 1};
  if (name == "combine") return {0, 1, 2};
  if (name == "vectorized") return {0, 1, 2, 3, 4, 5, 6, 7};
  if (name == "rows") return {1, 2, 3, 4, 8, 10};
  if (name == "columns") return {1, 2, 4, 8};
  if (name == "depth") return {8, 16};
  if (name == "b_type") return {0, 1, 2, 3, 4};
  if (name == "teams") return {1, 4, 16};
  if (name == "tile_m" || name == "tile_n") return {32, 64, 128};
  if (name == "micro_m" || name == "micro_n") return {4, 8};
  if (name == "step_count") return {0, 1, 2, 3, 4};
  if (name.compare(0, 4, "mode") == 0) return {0, 1, 2, 3, 4, 5};
  if (name == "result0" || name == "result1" || name == "result2") return {0, 1, 4, 5};
  if (is_step(c)) {
    std::vector<std::uint32_t> steps;
    for (std::uint32_t op = 0; op < op_count; ++op) steps.push_back(step(op, op % 4, (op + 1) % 4));
    return steps;
  }
  return {c.default_bits, 1};
}

// Every choice of every constant, beside defaults with two steps and a small tile, and random mixtures of them. The
// ops are dealt out to the steps, each of which has a program that ends with it; mixtures have any op anywhere.
std::vector<Named> broad_set(const kernels::Kernel& kernel) {
  const Named base{
      {"step_count", 2}, {"step0", step(code_relu)}, {"step1", step(code_add, 4, 1)}, {"rows", 2}, {"columns", 2}};
  std::vector<Named> all{{}, base};
  const auto steps = static_cast<std::size_t>(std::count_if(kernel.constants.begin(), kernel.constants.end(), is_step));
  std::size_t next_step = 0;
  for (const kernels::SpecConstant& c : kernel.constants) {
    const auto values = choices(c);
    const std::size_t first = is_step(c) ? next_step++ : 0;
    for (std::size_t i = first; i < values.size(); i += is_step(c) ? steps : 1) {
      all.push_back(base);
      all.back()[c.name] = values[i];
      if (is_step(c)) all.back()["step_count"] = static_cast<std::uint32_t>(std::max<std::size_t>(next_step, 2));
    }
  }
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    Named mixed;
    for (const kernels::SpecConstant& c : kernel.constants) {
      const auto values = choices(c);
      mixed[c.name] = values[random() % values.size()];
    }
    all.push_back(mixed);
  }
  return all;
}

Named relu_scale_add() {
  return {{"step_count", 3},
          {"step0", step(code_relu)},
          {"step1", step(code_scale, 4)},
          {"step2", step(code_add, 5, 1)},
          {"result0", 6},
          {"mode0", 1},
          {"mode1", 1},
          {"group_size", 256}};
}

std::size_t bytes(const Words& words) { return words.size() * sizeof(std::uint32_t); }

struct Contents {
  std::size_t functions = 0;
  std::size_t cases_on_constants = 0;     // of switches
  std::size_t branches_on_constants = 0;  // outside of loop headers
  std::size_t specialization_constants = 0;
};

Contents contents_of(const Words& words) {
  Contents found;
  std::set<std::uint32_t> constants;
  std::uint32_t before = 0;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const std::uint32_t op = words[at] & 0xffff;
    const std::uint32_t length = words[at] >> 16;
    if (length == 0) FAIL("word " << at << " begins no instruction");
    if (op >= 41 && op <= 46) constants.insert(words[at + 2]);
    if (op >= 48 && op <= 51) ++found.specialization_constants;
    if (op == 54) ++found.functions;
    if (op == 250 && before != 246 && constants.count(words[at + 1]) != 0) ++found.branches_on_constants;
    if (op == 251 && constants.count(words[at + 1]) != 0) found.cases_on_constants += (length - 3) / 2;
    before = op;
  }
  return found;
}

namespace reference {
using uint = std::uint32_t;
uint a, b;
bool c;
uint values[4];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#include "control_flow.glsl"
#pragma GCC diagnostic pop
}  // namespace reference

Words read_words(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr) SKIP(variable << " names no file");
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Words words(text.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), text.data(), bytes(words));
  REQUIRE(words.size() > 5);
  return words;
}

}  // namespace

// Making the modules is most of the work, so everything that holds for all of them is looked at in one go.
TEST_CASE("specialized modules are valid, do not branch on constants, and hold what these ask for and no more",
          "[specialize]") {
  const test::SpirvValidator validator;
  for (const kernels::Kernel& kernel : all_kernels()) {
    // Small kernels have few ways of working, so there is little to leave out of them.
    const bool small = kernel.words().size < 5000;
    // SPIRV-Tools may be older than matrix units; compiled and executed it is in the suite gpu-compilers.
    const Words whole(kernel.words().begin(), kernel.words().end());
    if (kernel.name == std::string("matmul_coopmat") && validator.complaint(whole) != "") continue;
    std::set<Words> seen;
    for (const Named& chosen : broad_set(kernel)) {
      const auto [module, is_new] = seen.insert(specialized(kernel, chosen));
      if (!is_new) continue;
      INFO(described(kernel, chosen));
      CHECK(validator.complaint(*module) == "");
      const Contents found = contents_of(*module);
      CHECK(found.cases_on_constants == 0);
      CHECK(found.branches_on_constants == 0);
      CHECK(found.specialization_constants == 0);
      CHECK(4 * bytes(*module) < (small ? 4 : 3) * kernel.words().size * sizeof(std::uint32_t));
    }
  }
}

TEST_CASE("the judge of modules objects to one that is wrong", "[specialize]") {
  const test::SpirvValidator validator;
  Words module = specialized(kernels::get(kernels::Id::elementwise), relu_scale_add());
  REQUIRE(validator.complaint(module) == "");
  module[3] /= 2;  // the bound of ids
  CHECK(validator.complaint(module) != "");
  CHECK(validator.complaint({}) != "");
}

TEST_CASE("a fused program and a tile are small modules", "[specialize]") {
  const Words fused = specialized(kernels::get(kernels::Id::elementwise), relu_scale_add());
  CHECK(bytes(fused) < 6000);
  // main, group_index, run, two loads and a store, apply for each of three ops, and relu.
  CHECK(contents_of(fused).functions == 10);

  const Named tiles{{"tile_m", 64}, {"tile_n", 64}, {"vectorized", 3}, {"b_layout", 1}};
  CHECK(bytes(specialized(kernels::get(kernels::Id::matmul_tiled), tiles)) < 24000);
}

TEST_CASE("a function keeps one copy for each op it is called with", "[specialize]") {
  Named chosen = relu_scale_add();
  const auto& kernel = kernels::get(kernels::Id::elementwise);
  const std::size_t different = contents_of(specialized(kernel, chosen)).functions;
  chosen["step1"] = step(code_relu, 4);
  CHECK(contents_of(specialized(kernel, chosen)).functions == different - 1);
  chosen["step2"] = step(code_relu, 5);
  CHECK(contents_of(specialized(kernel, chosen)).functions == different - 2);
}

TEST_CASE("specializing changes neither the structure of control flow nor what is computed", "[specialize]") {
  const test::SpirvValidator validator;
  for (const char* variable : {"BRONTES_CONTROL_FLOW", "BRONTES_CONTROL_FLOW_OPTIMIZED"}) {
    const Words words = read_words(variable);
    constexpr kernels::SpecConstant constants[] = {{0, 0, "a"}, {1, 0, "b"}, {2, 0, "c"}};
    const kernels::Kernel kernel{
        "control_flow", {{words.data(), words.size()}, {nullptr, 0}, {nullptr, 0}}, {nullptr, 0}, {constants, 3}, 0,
        false};
    for (std::uint32_t a = 0; a < 7; ++a) {
      for (std::uint32_t b = 0; b < 5; ++b) {
        for (std::uint32_t c = 0; c < 2; ++c) {
          const Named chosen{{"a", a}, {"b", b}, {"c", c}};
          const Words result = specialized(kernel, chosen);
          INFO(variable << " " << described(kernel, chosen));
          CHECK(validator.complaint(result) == "");
          CHECK(result.size() < words.size());
          for (std::uint32_t x = 0; x < 8; ++x) {
            reference::a = a;
            reference::b = b;
            reference::c = c != 0;
            const Words before{x, 1000, 1000, 0};
            std::copy(before.begin(), before.end(), reference::values);
            reference::run();
            Words after = before;
            CHECK(test::interpret(result, after) == "");
            CHECK(after == Words(std::begin(reference::values), std::end(reference::values)));
          }
        }
      }
    }
  }
}

TEST_CASE("specializing what is no valid module does no harm", "[specialize]") {
  const char* soak = std::getenv("BRONTES_SOAK");
  const int rounds = soak != nullptr && std::string(soak) == "1" ? 3000 : 100;
  std::mt19937 random(11);
  for (const kernels::Kernel& kernel : all_kernels()) {
    kernels::Kernel broken = kernel;
    for (int i = 0; i < rounds; ++i) {
      Words words(kernel.words().begin(), kernel.words().end());
      if (i % 3 == 0) words.resize(random() % words.size());
      for (int change = 0; change < 1 + i % 4 && words.size() > 6; ++change) {
        // The bound stays: it decides how much memory is taken.
        std::uint32_t& word = words[5 + random() % (words.size() - 5)];
        const std::uint32_t replaced[] = {0, word + 1, word ^ (1u << random() % 32),
                                          words[5 + random() % (words.size() - 5)]};
        word = replaced[random() % 4];
      }
      broken.modules[0] = {words.data(), words.size()};
      specialized(broken, relu_scale_add());
    }
  }
  SUCCEED();
}
