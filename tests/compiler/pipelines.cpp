#include "cases.hpp"
#include "fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

const bool brontes::test::radv_only = true;

namespace {

using brontes::test::compiler;
using kernel_report::Case;
using kernel_report::Figures;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    auto made = kernel_report::all_cases(compiler().traits());
    if (!made) FAIL(made.error().message);
    return *made;
  }();
  return all;
}

Figures compile(const Case& c) {
  auto figures = compiler().compile(brontes::kernels::get(c.kernel), c.constants);
  if (!figures) FAIL(c.name << ": " << figures.error().message);
  return *figures;
}

Figures compile_reference() {
  const char* path = std::getenv("BRONTES_REFERENCE_KERNEL");
  if (path == nullptr) SKIP("BRONTES_REFERENCE_KERNEL names no file");
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(bytes.size() > 20);
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), words.size() * 4);
  auto figures = compiler().compile(words, {0, 1, 2}, 12);
  if (!figures) FAIL(figures.error().message);
  return *figures;
}

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// Every pipeline of these names, and how many they were.
std::size_t check_no_spills(const std::string& prefix) {
  std::size_t count = 0;
  for (const Case& c : cases()) {
    if (!starts_with(c.name, prefix)) continue;
    ++count;
    const Figures figures = compile(c);
    INFO(c.name);
    CHECK(figures.usage.spills == 0);
    CHECK(figures.usage.scratch_bytes == 0);
    CHECK(figures.usage.instructions > 0);
    CHECK(figures.usage.waves > 0);
  }
  return count;
}

}  // namespace

TEST_CASE("a fused chain costs no more than the kernel written for it by hand", "[compiler]") {
  const Figures by_hand = compile_reference();
  bool found = false;
  for (const Case& c : cases()) {
    if (c.name != kernel_report::fused_case) continue;
    found = true;
    const Figures fused = compile(c);
    INFO("fused:\n" << fused.assembly << "\nby hand:\n" << by_hand.assembly);
    CHECK(fused.usage.instructions <= by_hand.usage.instructions);
    CHECK(fused.usage.registers <= by_hand.usage.registers);
    CHECK(fused.usage.code_bytes <= by_hand.usage.code_bytes);
    CHECK(fused.usage.waves >= by_hand.usage.waves);
    CHECK_FALSE(fused.usage.spilling());
  }
  CHECK(found);
}

TEST_CASE("no elementwise pipeline spills", "[compiler]") {
  std::size_t ops = 0;
#define BRONTES_OP(name, code, arity, scalars, types, formula) ++ops;
#include "elementwise.def"
#undef BRONTES_OP
  CHECK(check_no_spills("elementwise/") == ops);
  CHECK(check_no_spills("fused/") >= 7);
}

TEST_CASE("no reduction spills", "[compiler]") { CHECK(check_no_spills("reduce/") >= 4); }

TEST_CASE("no matmul pipeline spills", "[compiler]") {
  CHECK(check_no_spills("matmul/naive/") == 4);
  CHECK(check_no_spills("matmul/gemv/") == 52);
  CHECK(check_no_spills("matmul/tiled/") >= 30);
}

// How many there are depends on what the other names have already.
TEST_CASE("no op of the catalogue spills", "[compiler]") { check_no_spills(kernel_report::catalogue_prefix); }

TEST_CASE("matmul pipelines keep within 16 KiB of shared memory, and enough waves fit to hide latency", "[compiler]") {
  for (const Case& c : cases()) {
    if (!starts_with(c.name, "matmul/")) continue;
    const Figures figures = compile(c);
    INFO(c.name);
    CHECK(figures.usage.shared_bytes <= 16384);
    CHECK(figures.usage.waves >= 8);  // ggml-vulkan's large tile: 4
  }
}

TEST_CASE("most of what tiles execute for k are multiply-adds", "[compiler]") {
  // All of the loop over k: loads, stores to shared memory and the barrier, too.
  std::size_t count = 0;
  for (const Case& c : cases()) {
    if (c.kernel != brontes::kernels::Id::matmul_tiled) continue;
    ++count;
    const Figures figures = compile(c);
    const bool quantized = c.name.find("/q") != std::string::npos;
    INFO(c.name);
    CHECK(figures.isa.around_hot_loop.total == 0);
    CHECK(figures.isa.hot_loop.fma_share() >= (quantized ? 0.6 : 0.7));
  }
  CHECK(count >= 30);
}

TEST_CASE("gemv unpacks quantized weights in few instructions", "[compiler]") {
  // The hot loop takes a chunk of 16 bytes of each of four rows of W: 128 weights of q4_0, 64 of q8_0.
  std::size_t count = 0;
  for (const Case& c : cases()) {
    const bool q4_0 = c.name == "matmul/gemv/q4_0/1";
    if (!q4_0 && c.name != "matmul/gemv/q8_0/1") continue;
    ++count;
    const Figures figures = compile(c);
    INFO(c.name << "\n" << figures.assembly);
    CHECK(figures.isa.hot_loop.total <= (q4_0 ? 500u : 280u));
  }
  CHECK(count == 2);
}

TEST_CASE("gemv loads vec4s, and each weight once", "[compiler]") {
  for (const Case& c : cases()) {
    if (!starts_with(c.name, "matmul/gemv/nk/") || c.name.find("gelu") != std::string::npos) continue;
    const Figures figures = compile(c);
    INFO(c.name << "\n" << figures.assembly);
    // Four rows of W and all of A for every four of k; nothing else is read.
    const std::uint64_t rows = figures.isa.hot_loop.fma / 16;
    CHECK(figures.isa.hot_loop.fma == 16 * rows);
    CHECK(figures.isa.hot_loop.memory == 4 + rows);
  }
}
