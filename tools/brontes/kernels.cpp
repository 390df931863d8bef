#include "commands.hpp"
#include "json.hpp"

#include <brontes/catalogue.hpp>

#include <cstdio>
#include <iostream>

namespace tool {

const char* const kernels_help =
    "Usage: brontes kernels [--json]\n"
    "\n"
    "Lists every kernel of the library in every way to access memory: the size of its SPIR-V, its bindings,\n"
    "specialization constants and push constants, and whether it needs subgroup operations.\n"
    "\n"
    "  --json  the same as JSON\n";

int kernels(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json"}, {}, 0});
  if (!parsed.problem.empty()) return report_misuse("kernels", parsed.problem);
  const std::vector<brontes::LibraryKernel> all = brontes::library_kernels();
  if (parsed.flag("--json")) {
    Json json(std::cout);
    json.begin(nullptr, '[');
    for (const brontes::LibraryKernel& k : all) {
      json.begin(nullptr, '{');
      json.put("name", k.name);
      json.put("access", brontes::to_string(k.access));
      json.put("spirv_bytes", k.spirv_bytes);
      json.put("bindings", k.bindings);
      json.put("constants", k.constants);
      json.put("push_bytes", k.push_bytes);
      json.put("subgroups", k.subgroups);
      json.end('}');
    }
    json.end(']');
    std::cout << '\n';
    return success;
  }
  std::printf("%-24s %-8s %8s %8s %9s %6s  %s\n", "kernel", "access", "SPIR-V", "bindings", "constants", "push", "");
  for (const brontes::LibraryKernel& k : all) {
    std::printf("%-24s %-8s %8llu %8u %9u %6u  %s\n", k.name.c_str(), brontes::to_string(k.access),
                static_cast<unsigned long long>(k.spirv_bytes), k.bindings, k.constants, k.push_bytes,
                k.subgroups ? "subgroups" : "");
  }
  return success;
}

}  // namespace tool
