// What is read from a module, and what is refused: no driver sees any of it.
#include "ops/call.hpp"
#include "spirv/prune.hpp"
#include "spirv/reflect.hpp"
#include "spirv/specialize.hpp"
#include "spirv/specialize_ops.hpp"
#include "spirv/words.hpp"

#include "accumulate.spv.h"
#include "array.spv.h"
#include "axpy.spv.h"
#include "binding_number.spv.h"
#include "bindings.spv.h"
#include "float64.spv.h"
#include "fragment.spv.h"
#include "local_size.spv.h"
#include "matrix_push.spv.h"
#include "old.spv.h"
#include "push.spv.h"
#include "sampler.spv.h"
#include "set.spv.h"
#include "shared.spv.h"
#include "split.spv.h"
#include "storage_image.spv.h"
#include "storage_texel_buffer.spv.h"
#include "subgroup.spv.h"
#include "texel_buffer.spv.h"
#include "uniform_buffer.spv.h"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace brontes::spirv {
namespace {

using kernels::Access;
using Words = std::vector<std::uint32_t>;
namespace code = spirv;

template <std::size_t N>
Words words_of(const std::uint32_t (&array)[N]) {
  return {array, array + N};
}

Limits usual() {
  Limits limits;
  limits.capabilities = {0, 1};
  limits.extensions = {"SPV_KHR_storage_buffer_storage_class"};
  return limits;
}

// What is wrong with it, as from_spirv() finds it.
Error refusal(const Words& words, const std::string& entry = {}, std::vector<GivenConstant> given = {},
              const Limits& limits = usual()) {
  auto reflected = reflect(words, entry, given);
  return reflected ? check(*reflected, limits) : reflected.error();
}

bool says(const Error& e, Errc code, const std::string& part) {
  const bool right = e.code == code && e.message.find(part) != std::string::npos;
  if (!right) UNSCOPED_INFO("code " << static_cast<int>(e.code) << ": " << e.message);
  return right;
}

// The word where the n-th instruction of this kind begins.
std::size_t find(const Words& words, std::uint32_t op, std::size_t n = 0) {
  for (std::size_t at = code::header_words; at < words.size(); at += code::length(&words[at])) {
    if (code::opcode(&words[at]) == op && n-- == 0) return at;
  }
  FAIL("no such instruction: " << op);
  return 0;
}

Words without(Words words, std::size_t at) {
  const auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
  words.erase(first, first + code::length(&words[at]));
  return words;
}

Words with(Words words, std::size_t at, const Words& more) {
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  return words;
}

constexpr kernels::Id library_kernels[] = {kernels::Id::matmul_naive, kernels::Id::reduce};
constexpr std::size_t library_modules = std::size(library_kernels);

/// Those of the library come last.
std::vector<std::pair<std::string, Words>> all_modules() {
  std::vector<std::pair<std::string, Words>> all = {
      {"axpy", words_of(axpy_spv)},
      {"split", words_of(split_spv)},
      {"old", words_of(old_spv)},
      {"accumulate", words_of(accumulate_spv)},
      {"subgroup", words_of(subgroup_spv)},
      {"shared", words_of(shared_spv)},
      {"matrix_push", words_of(matrix_push_spv)},
      {"local_size", words_of(local_size_spv)},
      {"storage_image", words_of(storage_image_spv)},
      {"array", words_of(array_spv)},
      {"fragment", words_of(fragment_spv)},
  };
  for (kernels::Id id : library_kernels) {
    const kernels::Kernel& kernel = kernels::get(id);
    all.emplace_back(kernel.name, spirv::words(kernel));
  }
  return all;
}

}  // namespace

TEST_CASE("reflection of the library's kernels agrees with what kernelgen found", "[spirv]") {
  for (std::size_t i = 0; i < kernels::count; ++i) {
    const kernels::Kernel& kernel = kernels::get(static_cast<kernels::Id>(i));
    if (kernel.words().size == 0) continue;  // this build cannot compile it
    INFO(kernel.name);
    const Words words = spirv::words(kernel);
    if (static_cast<kernels::Id>(i) == kernels::Id::matmul_coopmat) {
      // Matrix units take Vulkan's memory model, which kernels of users cannot have.
      CHECK(reflect(words).error().code == Errc::unsupported);
      continue;
    }
    const auto module = reflect(words);
    INFO(module.error().message);
    REQUIRE(module.has_value());
    CHECK(module->push_bytes == kernel.push_bytes);
    CHECK(module->subgroups == kernel.subgroups);
    REQUIRE(module->constants.size() == kernel.constants.size);
    for (std::size_t c = 0; c < kernel.constants.size; ++c) {
      CHECK(module->constants[c].id == kernel.constants[c].id);
      CHECK(module->constants[c].default_bits == kernel.constants[c].default_bits);
    }
    REQUIRE(module->bindings.size() == kernel.bindings.size);
    for (std::size_t b = 0; b < kernel.bindings.size; ++b) {
      INFO(kernel.bindings[b].name);
      CHECK(module->bindings[b].number == kernel.bindings[b].binding);
    }
    // To reflection, what is updated half by half is read; a kernel without f16 has nothing of that left.
    std::vector<std::uint32_t> defaults;
    for (std::size_t c = 0; c < kernel.constants.size; ++c) defaults.push_back(kernel.constants[c].default_bits);
    const auto plain = reflect(spirv::specialize(kernel, {defaults.data(), defaults.size()}));
    INFO(plain.error().message);
    REQUIRE(plain.has_value());
    for (const spirv::Binding& found : plain->bindings) {
      for (std::size_t b = 0; b < kernel.bindings.size; ++b) {
        const kernels::Binding& known = kernel.bindings[b];
        if (known.binding != found.number || known.access == Access::read_write) continue;
        INFO(known.name);
        CHECK(found.access == known.access);
      }
    }
  }
}

TEST_CASE("a module's bindings, constants and sizes are found", "[spirv]") {
  const auto module = reflect(words_of(axpy_spv));
  INFO(module.error().message);
  REQUIRE(module.has_value());
  CHECK(module->entry_point == "main");
  CHECK(module->version == 0x00010300);
  CHECK(module->capabilities == std::vector<std::uint32_t>{1});
  REQUIRE(module->bindings.size() == 3);
  CHECK(module->bindings[1].number == 2);
  CHECK(module->bindings[1].access == Access::write);
  CHECK(module->bindings[2].name == "Y");
  CHECK(module->push_bytes == 8);
  REQUIRE(module->constants.size() == 4);
  CHECK(module->constants[1].kind == ConstantKind::floating);
  CHECK(module->constants[2].kind == ConstantKind::boolean);
  CHECK(module->constants[3].name == "shift");
  CHECK(module->local_size == std::array<std::uint32_t, 3>{1, 1, 1});

  const auto matrix = reflect(words_of(matrix_push_spv));
  REQUIRE(matrix.has_value());
  // A float, then from 16 on a row-major mat3x2 of two rows of 16 bytes, then from 48 on three uints.
  CHECK(matrix->push_bytes == 60);
}

TEST_CASE("access comes from loads and stores where nothing declares it", "[spirv]") {
  for (const Words& words : {words_of(split_spv), words_of(old_spv)}) {
    const auto module = reflect(words);
    INFO(module.error().message);
    REQUIRE(module.has_value());
    REQUIRE(module->bindings.size() == 3);
    CHECK(module->bindings[0].access == Access::read);
    CHECK(module->bindings[1].access == Access::write);
    CHECK(module->bindings[2].access == Access::write);
  }
  const auto update = reflect(words_of(accumulate_spv));
  REQUIRE(update.has_value());
  CHECK(update->bindings[0].access == Access::read_write);
  CHECK(update->bindings[1].access == Access::read);
  CHECK(update->local_size == std::array<std::uint32_t, 3>{8, 4, 1});
  CHECK(update->shared_bytes == 32 * 16 + 4);  // a vec3 takes the room of a vec4
}

TEST_CASE("sizes follow the specialization constants", "[spirv]") {
  const GivenConstant y{7, 5, ConstantKind::integer};
  const auto module = reflect(words_of(local_size_spv), "", {&y, 1});
  INFO(module.error().message);
  REQUIRE(module.has_value());
  CHECK(module->local_size == std::array<std::uint32_t, 3>{64, 5, 2});
  CHECK(module->constants[0].bits == 5);
  CHECK(says(refusal(words_of(local_size_spv), "", {y}), Errc::limit_exceeded, "64 x 5 x 2 has 640 invocations"));

  CHECK(reflect(words_of(shared_spv))->shared_bytes == 16 * 4 * 16);
  const GivenConstant count{3, 100, ConstantKind::integer};
  CHECK(reflect(words_of(shared_spv), "", {&count, 1})->shared_bytes == 16 * 100 * 16);
  CHECK(says(refusal(words_of(shared_spv), "", {count}), Errc::limit_exceeded, "shared variables take 25600 bytes"));
}

TEST_CASE("a workgroup size given by ids becomes a literal one", "[spirv]") {
  // LocalSizeId needs a feature of the device. Made from LocalSize here, with the ids of constants.
  Words words = words_of(split_spv);
  const std::size_t mode = find(words, code::op_execution_mode);
  std::uint32_t one = 0;
  for (std::size_t n = 0; one == 0; ++n) {
    const std::size_t at = find(words, code::op_constant, n);
    if (words[at + 3] == 1) one = words[at + 2];
  }
  // The workgroup size that glslang declares beside it would win.
  for (std::size_t n = 0;; ++n) {
    const std::size_t at = find(words, code::op_decorate, n);
    if (words[at + 2] != code::decoration_built_in || words[at + 3] != 25) continue;
    words = without(words, at);
    break;
  }
  words[mode] = 6u << 16 | code::op_execution_mode_id;
  words[mode + 2] = 38;
  words[mode + 3] = words[mode + 4] = words[mode + 5] = one;
  const auto module = reflect(words);
  INFO(module.error().message);
  REQUIRE(module.has_value());
  CHECK(module->local_size == std::array<std::uint32_t, 3>{1, 1, 1});
  CHECK(module->module[mode] == (6u << 16 | code::op_execution_mode));
  CHECK(module->module[mode + 3] == 1);
}

TEST_CASE("words that are no module are refused", "[spirv]") {
  const Words good = words_of(axpy_spv);
  CHECK(!refusal(good));
  CHECK(says(refusal({}), Errc::invalid_argument, "0 words are no SPIR-V"));
  CHECK(says(refusal({good.begin(), good.begin() + 4}), Errc::invalid_argument, "header"));
  CHECK(says(refusal(Words(100, 0x6c726576)), Errc::invalid_argument, "no SPIR-V: it begins with 0x6c726576"));
  Words words = good;
  for (std::uint32_t& w : words) w = w >> 24 | (w >> 8 & 0xff00) | (w << 8 & 0xff0000) | w << 24;
  CHECK(says(refusal(words), Errc::invalid_argument, "byte order of another machine"));
  words = good;
  words[1] = 0x00020000;
  CHECK(says(refusal(words), Errc::invalid_argument, "version"));
  words[1] = 0x00010600;
  CHECK(says(refusal(words), Errc::unsupported, "SPIR-V 1.6, and the library takes up to 1.5"));
  words = good;
  words[3] = 0;
  CHECK(says(refusal(words), Errc::invalid_argument, "bound"));
  words[3] = 0xffffffff;
  CHECK(says(refusal(words), Errc::invalid_argument, "bound"));
  words[3] = 10;
  CHECK(says(refusal(words), Errc::invalid_argument, "is not below the bound 10"));
  words = good;
  words[4] = 1;
  CHECK(says(refusal(words), Errc::invalid_argument, "schema"));
  words = good;
  words.pop_back();
  CHECK(refusal(words).code == Errc::invalid_argument);
  for (std::size_t n = code::header_words; n < good.size(); ++n) {
    CHECK(refusal({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}).code == Errc::invalid_argument);
  }
  words = good;
  words[find(words, code::op_load)] &= 0xffff;
  CHECK(says(refusal(words), Errc::invalid_argument, "is cut short"));
}

TEST_CASE("modules with parts missing or twice are refused", "[spirv]") {
  const Words good = words_of(axpy_spv);
  auto removed = [&](std::uint32_t op, std::size_t n = 0) { return without(good, find(good, op, n)); };
  CHECK(says(refusal(removed(code::op_entry_point)), Errc::invalid_argument, "no entry point"));
  CHECK(says(refusal(removed(code::op_memory_model)), Errc::invalid_argument, "no memory model"));
  CHECK(says(refusal(removed(code::op_label)), Errc::invalid_argument, "outside of any block"));
  CHECK(says(refusal(removed(code::op_function)), Errc::invalid_argument, "outside of any function"));
  CHECK(says(refusal(removed(code::op_function_end)), Errc::invalid_argument, "the last function has no end"));
  CHECK(says(refusal(removed(code::op_load)), Errc::invalid_argument, "is defined nowhere"));
  CHECK(says(refusal(removed(code::op_type_float)), Errc::invalid_argument, ""));
  const std::size_t load = find(good, code::op_load);
  CHECK(says(refusal(with(good, load,
                          {good.begin() + static_cast<std::ptrdiff_t>(load),
                           good.begin() + static_cast<std::ptrdiff_t>(load + 4)})),
             Errc::invalid_argument, "defined a second time"));
  Words words = good;
  words[find(words, code::op_memory_model) + 2] = 3;
  CHECK(says(refusal(words), Errc::unsupported, "memory model"));
  words = good;
  words[find(words, code::op_entry_point) + 2] = words[find(words, code::op_type_float) + 1];
  CHECK(says(refusal(words), Errc::invalid_argument, "is no function"));
  // The binding of a variable, and its set.
  for (std::size_t n = 0; n < 40; ++n) {
    const std::size_t at = find(good, code::op_decorate, n);
    if (good[at + 2] != 33) continue;
    CHECK(says(refusal(without(good, at)), Errc::invalid_argument, "has no descriptor set and binding"));
    break;
  }
  // No workgroup size at all, in a module whose size is a literal.
  const Words literal = words_of(split_spv);
  words = without(literal, find(literal, code::op_execution_mode));
  for (std::size_t n = 0;; ++n) {
    const std::size_t at = find(words, code::op_decorate, n);
    if (words[at + 2] != code::decoration_built_in || words[at + 3] != 25) continue;
    words = without(words, at);
    break;
  }
  CHECK(says(refusal(words), Errc::invalid_argument, "has no workgroup size"));
  words = literal;
  words[find(words, code::op_execution_mode) + 4] = 0;
  CHECK(refusal(words).code == Errc::ok);  // the WorkgroupSize constant counts
}

TEST_CASE("entry points are chosen by name", "[spirv]") {
  CHECK(says(refusal(words_of(fragment_spv)), Errc::invalid_argument,
             "no compute shader: its entry points are \"main\" (fragment)"));
  const Words good = words_of(axpy_spv);
  CHECK(!refusal(good, "main"));
  CHECK(says(refusal(good, "other"), Errc::invalid_argument,
             "no compute entry point \"other\"; its entry points are \"main\""));
  const std::size_t entry = find(good, code::op_entry_point);
  Words second(good.begin() + static_cast<std::ptrdiff_t>(entry),
               good.begin() + static_cast<std::ptrdiff_t>(entry + code::length(&good[entry])));
  second[3] = 'a' | 'l' << 8 | 's' << 16 | 'o' << 24;
  const Words two = with(good, entry, second);
  CHECK(says(refusal(two), Errc::invalid_argument, "2 compute entry points, \"also\", \"main\""));
  CHECK(reflect(two, "also")->entry_point == "also");
  CHECK(reflect(two, "main")->entry_point == "main");
  Words endless = good;
  for (std::size_t i = 3; i < code::length(&good[entry]); ++i) endless[entry + i] = 0x61616161;
  CHECK(says(refusal(endless), Errc::invalid_argument, "has no end"));
}

TEST_CASE("descriptors other than storage buffers are refused by their kind", "[spirv]") {
  const Limits limits = [] {
    Limits all = usual();
    all.capabilities.insert(all.capabilities.end(), {44, 46, 47, 49, 50});
    return all;
  }();
  auto kind = [&](const Words& words, const std::string& part) {
    return says(refusal(words, "", {}, limits), Errc::unsupported, part);
  };
  CHECK(
      kind(words_of(uniform_buffer_spv), "binding 1 ('other') is a uniform buffer; kernels take storage buffers only"));
  CHECK(kind(words_of(storage_image_spv), "is a storage image"));
  CHECK(kind(words_of(sampler_spv), "is a combined image sampler"));
  CHECK(kind(words_of(texel_buffer_spv), "is a uniform texel buffer"));
  CHECK(kind(words_of(storage_texel_buffer_spv), "is a storage texel buffer"));
  CHECK(kind(words_of(array_spv), "is an array of descriptors, each a storage buffer"));
  CHECK(kind(words_of(set_spv), "binding 1 ('other') is in descriptor set 2; kernels have set 0 only"));
}

TEST_CASE("what a device has not enabled is refused by its name", "[spirv]") {
  CHECK(says(refusal(words_of(float64_spv)), Errc::unsupported, "the capability Float64"));
  CHECK(says(refusal(words_of(subgroup_spv)), Errc::unsupported, "the capability GroupNonUniform"));
  Limits more = usual();
  more.capabilities.insert(more.capabilities.end(), {61, 63});
  CHECK(!refusal(words_of(subgroup_spv), "", {}, more));
  CHECK(reflect(words_of(subgroup_spv))->subgroups);
  const Words good = words_of(axpy_spv);
  const std::size_t at = find(good, code::op_memory_model);
  // OpCapability 4999, OpExtension "SPV"
  CHECK(says(refusal(with(good, at, {2u << 16 | 17, 4999})), Errc::unsupported, "capability number 4999"));
  CHECK(says(refusal(with(good, at, {2u << 16 | 10, 0x00565053})), Errc::unsupported, "extension SPV,"));
  CHECK(says(refusal(with(good, at, {2u << 16 | 10, 0x56505353})), Errc::invalid_argument, "has no end"));
  Words words = good;
  const std::size_t import = find(words, code::op_ext_inst_import);
  words[import + 2] = 'N' | 'o' << 8 | 'n' << 16 | 'S' << 24;
  CHECK(says(refusal(words), Errc::unsupported, "instruction set \"NonS"));
}

TEST_CASE("more than a dispatch or a device holds is refused with the limit", "[spirv]") {
  CHECK(says(refusal(words_of(bindings_spv)), Errc::limit_exceeded, "9 bindings, and a dispatch takes at most 8"));
  CHECK(says(refusal(words_of(binding_number_spv)), Errc::limit_exceeded, "a binding 60000"));
  CHECK(says(refusal(words_of(push_spv)), Errc::limit_exceeded, "the push constants take 132 bytes"));
  const GivenConstant size{0, 2000, ConstantKind::integer};
  CHECK(says(refusal(words_of(axpy_spv), "", {size}), Errc::limit_exceeded, "along x 2000 invocations"));
  const GivenConstant none{0, 0, ConstantKind::integer};
  CHECK(says(refusal(words_of(axpy_spv), "", {none}), Errc::invalid_argument, "the workgroup size is 0 x 1 x 1"));
}

TEST_CASE("specialization constants that do not fit are refused", "[spirv]") {
  const Words good = words_of(axpy_spv);
  CHECK(says(refusal(good, "", {{9, 1, ConstantKind::integer}}), Errc::invalid_argument,
             "no specialization constant 9; it has 0, 1, 2, 3"));
  CHECK(says(refusal(words_of(split_spv), "", {{0, 1, ConstantKind::integer}}), Errc::invalid_argument, "it has none"));
  CHECK(says(refusal(good, "", {{1, 1, ConstantKind::integer}}), Errc::invalid_argument,
             "constant 1 is a float, and what is given for it is an integer"));
  CHECK(says(refusal(good, "", {{2, 1, ConstantKind::floating}}), Errc::invalid_argument, "constant 2 is a boolean"));
  CHECK(says(refusal(good, "", {{0, 1, ConstantKind::integer}, {0, 2, ConstantKind::integer}}), Errc::invalid_argument,
             "given twice"));
}

TEST_CASE("any words give a reflection or an error", "[spirv]") {
  const auto modules = all_modules();
  std::mt19937 random(7);
  auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::size_t accepted = 0;
  constexpr std::size_t runs = 20000;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t run = 0; run < runs; ++run) {
    // The library's own modules, at the end, have a hundred times as many words: each gets its turn, but not as often.
    const std::size_t small = modules.size() - library_modules;
    Words words = modules[run % 20 == 0 ? small + run / 20 % library_modules : run % small].second;
    const std::size_t changes = 1 + below(3);
    for (std::size_t c = 0; c < changes && words.size() > 1; ++c) {
      const std::size_t at = below(words.size());
      switch (below(7)) {
        case 0: words[at] ^= 1u << below(32); break;
        case 1: words[at] = static_cast<std::uint32_t>(random()); break;
        case 2: words[at] = static_cast<std::uint32_t>(below(64)); break;
        case 3: words[at] = words[below(words.size())]; break;
        case 4: words.resize(at); break;
        case 5: words.erase(words.begin() + static_cast<std::ptrdiff_t>(at)); break;
        default:
          // The opcode alone, so that the module still has its instructions in place.
          words[at] = (words[at] & 0xffff0000) | static_cast<std::uint32_t>(below(420));
          break;
      }
    }
    const GivenConstant given{0, random(), ConstantKind::integer};
    auto module = reflect(words, "", {&given, run % 2});
    if (!module) {
      if (module.error().message.empty()) FAIL("an error without a message");
      continue;
    }
    ++accepted;
    static_cast<void>(check(*module, usual()));
    const ops::UserKernel kernel(std::move(*module), "mutant");
    if (kernel.kernel().words().size < code::header_words) FAIL("a kernel without words");
  }
  const auto time = std::chrono::steady_clock::now() - start;
  INFO(accepted << " of " << runs << " accepted in "
                << std::chrono::duration_cast<std::chrono::milliseconds>(time).count() << " ms");
  CHECK(accepted > 0);
  CHECK(accepted < runs);
}

TEST_CASE("deeply shared types and huge sizes take no time", "[spirv]") {
  // struct A { B b, b; }; struct B { C c, c; } and so on: 2^60 members in all, if one were to count.
  const Words good = words_of(split_spv);
  std::uint32_t id = good[3];
  const std::uint32_t scalar = good[find(good, code::op_type_float) + 1];
  Words types;
  std::uint32_t inner = scalar;
  for (int i = 0; i < 60; ++i) {
    types.insert(types.end(), {4u << 16 | 30, id, inner, inner});
    inner = id++;
  }
  const std::uint32_t pointer = id++;
  types.insert(types.end(), {4u << 16 | code::op_type_pointer, pointer, 4, inner});
  types.insert(types.end(), {4u << 16 | code::op_variable, pointer, id++, 4});
  Words words = with(good, find(good, code::op_function), types);
  words[3] = id;
  CHECK(says(refusal(words), Errc::limit_exceeded, "shared variables take"));
}

}  // namespace brontes::spirv
