#include "support/spirv_interpreter.hpp"

#include <cstddef>
#include <utility>

namespace brontes::test {
namespace {

using Words = std::vector<std::uint32_t>;

class Interpreter {
 public:
  // A pointer is an index into the memory: first the buffer, then variables as they are met.
  Interpreter(const Words& words, Words& memory)
      : words_(words), memory_(memory), values_(words[3]), places_(words[3]) {}

  std::string run() {
    std::uint32_t entry = 0;
    bool in_functions = false;
    for (std::size_t at = 5; at < words_.size(); at += words_[at] >> 16) {
      const std::uint32_t* word = &words_[at];
      switch (word[0] & 0xffff) {
        case 15: entry = word[2]; break;             // EntryPoint
        case 41: values_[word[2]] = 1; break;        // ConstantTrue
        case 43: values_[word[2]] = word[3]; break;  // Constant
        case 54:                                     // Function
          in_functions = true;
          places_[word[2]] = at;
          break;
        case 248: places_[word[1]] = at; break;  // Label
        case 48:                                 // SpecConstant...
        case 49:
        case 50:
        case 52: return "a specialization constant";
        default: break;
      }
    }
    if (entry == 0 || !in_functions) return "no entry point";
    call(entry, {});
    return error_;
  }

 private:
  std::uint32_t call(std::uint32_t function, const Words& arguments) {
    std::size_t at = places_[function];
    std::size_t parameter = 0;
    std::uint32_t block = 0;
    std::uint32_t previous = 0;
    while (error_.empty()) {
      if (++steps_ > 1000000) error_ = "it does not end";
      const std::uint32_t* word = &words_[at];
      const std::uint32_t length = word[0] >> 16;
      at += length;
      switch (word[0] & 0xffff) {
        case 54: break;                                                // Function
        case 55: values_[word[2]] = arguments.at(parameter++); break;  // FunctionParameter
        case 1: values_[word[2]] = 0xdead; break;                      // Undef
        case 57: {                                                     // FunctionCall
          Words passed;
          for (std::uint32_t i = 4; i < length; ++i) passed.push_back(values_[word[i]]);
          values_[word[2]] = call(word[3], passed);
          break;
        }
        case 59:  // Variable
          values_[word[2]] = static_cast<std::uint32_t>(memory_.size());
          memory_.push_back(0xbeef);
          break;
        case 61: values_[word[2]] = memory_.at(values_[word[3]]); break;  // Load
        case 62: memory_.at(values_[word[1]]) = values_[word[2]]; break;  // Store
        case 65: values_[word[2]] = values_[word[length - 1]]; break;     // AccessChain
        case 245: at = phis(at - length, previous); break;                // Phi
        case 246:                                                         // LoopMerge
        case 247: break;                                                  // SelectionMerge
        case 248:                                                         // Label
          previous = std::exchange(block, word[1]);
          break;
        case 249: at = places_[word[1]]; break;                                    // Branch
        case 250: at = places_[values_[word[1]] != 0 ? word[2] : word[3]]; break;  // BranchConditional
        case 251: {                                                                // Switch
          std::uint32_t target = word[2];
          for (std::uint32_t i = 3; i + 1 < length; i += 2) {
            if (word[i] == values_[word[1]]) target = word[i + 1];
          }
          at = places_[target];
          break;
        }
        case 253: return 0;                 // Return
        case 254: return values_[word[1]];  // ReturnValue
        default: compute(word); break;
      }
    }
    return 0;
  }

  // All phis of a block read before any of them writes.
  std::size_t phis(std::size_t at, std::uint32_t previous) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> results;
    for (; (words_[at] & 0xffff) == 245; at += words_[at] >> 16) {
      bool found = false;
      for (std::size_t i = 3; i < words_[at] >> 16; i += 2) {
        if (words_[at + i + 1] != previous) continue;
        results.emplace_back(words_[at + 2], values_[words_[at + i]]);
        found = true;
      }
      if (!found) error_ = "a phi that does not know where control comes from";
    }
    for (const auto& [id, value] : results) values_[id] = value;
    return at;
  }

  void compute(const std::uint32_t* word) {
    const std::uint32_t length = word[0] >> 16;
    const std::uint32_t x = length > 3 ? values_[word[3]] : 0;
    const std::uint32_t y = length > 4 ? values_[word[4]] : 0;
    std::uint32_t& result = values_[length > 2 ? word[2] : 0];
    switch (word[0] & 0xffff) {
      case 128: result = x + y; break;
      case 130: result = x - y; break;
      case 132: result = x * y; break;
      case 166: result = x | y; break;  // LogicalOr
      case 167: result = x & y; break;  // LogicalAnd
      case 168: result = x ^ 1; break;  // LogicalNot
      case 169: result = x != 0 ? y : values_[word[5]]; break;
      case 164:
      case 170: result = x == y ? 1 : 0; break;
      case 165:
      case 171: result = x != y ? 1 : 0; break;
      case 172: result = x > y ? 1 : 0; break;
      case 174: result = x >= y ? 1 : 0; break;
      case 176: result = x < y ? 1 : 0; break;
      case 178: result = x <= y ? 1 : 0; break;
      case 196: result = x << y; break;
      case 198: result = x ^ y; break;
      default: error_ = "opcode " + std::to_string(word[0] & 0xffff);
    }
  }

  const Words& words_;
  Words& memory_;
  Words values_;
  std::vector<std::size_t> places_;  // of labels and functions
  std::uint32_t steps_ = 0;
  std::string error_;
};

}  // namespace

std::string interpret(const std::vector<std::uint32_t>& module, std::vector<std::uint32_t>& buffer) {
  const std::size_t size = buffer.size();
  std::string error = Interpreter(module, buffer).run();
  buffer.resize(size);
  return error;
}

}  // namespace brontes::test
