#include "corpus.hpp"

#include <catch2/catch_test_macros.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

namespace brontes::test {
namespace {

// Calls visit(opcode, words, count) for every instruction.
template <class Visit>
void each_instruction(const Words& words, Visit&& visit) {
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
    visit(words[at] & 0xffff, words.data() + at, words[at] >> 16);
  }
}

void read_modules(const std::string& path, std::vector<Module>& all) {
  std::ifstream file(path, std::ios::binary);
  const auto number = [&file] {
    std::uint32_t value = 0;
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  };
  for (std::uint32_t length = number(); file; length = number()) {
    Module module;
    module.name.resize(length);
    file.read(module.name.data(), length);
    module.words.resize(number());
    file.read(reinterpret_cast<char*>(module.words.data()),
              static_cast<std::streamsize>(module.words.size() * sizeof(std::uint32_t)));
    REQUIRE(file);
    all.push_back(std::move(module));
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<Module> read_corpus() {
  std::vector<Module> all;
  read_modules(environment("BRONTES_CORPUS"), all);
  if (soak() && !environment("BRONTES_CORPUS_COMMAND").empty()) {
    const std::string path = environment("BRONTES_CORPUS") + "." + std::to_string(getpid());
    const std::string command =
        environment("BRONTES_CORPUS_COMMAND") + " --first 100000 --count 2000 --output '" + path + "'";
    REQUIRE(std::system(command.c_str()) == 0);
    read_modules(path, all);
    std::remove(path.c_str());
  }
  return all;
}

}  // namespace

bool soak() { return environment("BRONTES_SOAK") == "1"; }

bool Module::has_capability(std::uint32_t capability) const {
  bool found = false;
  each_instruction(words, [&](std::uint32_t op, const std::uint32_t* word, std::uint32_t) {
    found |= op == 17 && word[1] == capability;
  });
  return found;
}

const std::vector<Module>& corpus() {
  if (environment("BRONTES_CORPUS").empty()) SKIP("BRONTES_CORPUS names no file");
  static const std::vector<Module> all = read_corpus();
  REQUIRE(!all.empty());
  return all;
}

std::vector<spirv::ConstantValue> random_values(const Module& module, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::map<std::uint32_t, std::uint32_t> spec_ids;  // by the constant's id
  std::map<std::uint32_t, bool> is_float;           // by the type's
  std::vector<spirv::ConstantValue> values;
  each_instruction(module.words, [&](std::uint32_t op, const std::uint32_t* word, std::uint32_t count) {
    constexpr std::uint64_t anything[] = {0, 1, 2, 3, 4, 7, 31, 100, 0x80000000, 0xffffffff, ~std::uint64_t{0}};
    if (op == 71 && count == 4 && word[2] == 1) spec_ids[word[1]] = word[3];
    if (op == 21 || op == 22) is_float[word[1]] = op == 22;
    if (op < 48 || op > 50 || spec_ids.count(word[2]) == 0) return;
    const std::uint32_t id = spec_ids[word[2]];
    std::uint64_t bits = anything[random() % std::size(anything)];
    if (op != 50) {
      bits = random() % 2;
    } else if (id == 90) {
      bits = 1u << random() % 4;
    } else if (id >= 80) {
      bits = 1 + random() % 6;
    } else if (is_float[word[1]]) {
      const auto small = static_cast<float>(random() % 16);
      std::memcpy(&bits, &small, sizeof small);
      bits &= 0xffffffff;
    }
    values.push_back({id, bits});
  });
  return values;
}

std::size_t constant_bytes(const Words& module, std::uint32_t id) {
  std::map<std::uint32_t, std::uint32_t> bits;  // by the type's id
  std::uint32_t constant = 0;
  std::size_t bytes = sizeof(std::uint32_t);  // of a boolean
  each_instruction(module, [&](std::uint32_t op, const std::uint32_t* word, std::uint32_t count) {
    if (op == 71 && count == 4 && word[2] == 1 && word[3] == id) constant = word[1];
    if (op == 21 || op == 22) bits[word[1]] = word[2];
    if (op == 50 && word[2] == constant) bytes = bits[word[1]] / 8;
  });
  return bytes;
}

std::string described(const Module& module, const std::vector<spirv::ConstantValue>& values) {
  std::string text = module.name + ";";
  for (const spirv::ConstantValue& value : values) {
    text += " " + std::to_string(value.id) + "=" + std::to_string(value.bits);
  }
  return text;
}

}  // namespace brontes::test
