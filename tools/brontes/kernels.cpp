#include "commands.hpp"
#include "json.hpp"
#include "run_program.hpp"

#include <brontes/catalogue.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace tool {

const char* const kernels_help =
    "Usage: brontes kernels [--json]\n"
    "       brontes kernels --compiled [PART-OF-A-NAME...] [--isa] [--json] [--device WHICH]\n"
    "\n"
    "Lists every kernel of the library in every way to access memory: the size of its SPIR-V, its bindings,\n"
    "specialization constants and push constants, and whether it needs subgroup operations.\n"
    "\n"
    "  --compiled      instead, compile every kernel in every variant that is used on a device, and say what its\n"
    "                  driver tells of each: registers, spills, scratch and shared memory, waves, instructions;\n"
    "                  those of a kernel whose name has a part, or all. Takes a minute, and a driver with\n"
    "                  VK_KHR_pipeline_executable_properties: most for GPUs, none for CPUs\n"
    "  --isa           print the code of the driver's compiler instead\n"
    "  --json          the same as JSON\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n";

namespace {

// By a program that sees the inside of the library. It ends with 77 where no driver tells.
int compiled(const Parsed& parsed) {
  Arguments words;
  for (const char* flag : {"--isa", "--json"}) {
    if (parsed.flag(flag)) words.emplace_back(flag);
  }
  words.insert(words.end(), parsed.positional.begin(), parsed.positional.end());
#if !defined(_WIN32)
  if (const std::string device = parsed.option("--device"); !device.empty()) {
    setenv("BRONTES_DEVICE", device.c_str(), 1);
  }
#endif
  return become(
      "kernels",
      {"brontes-kernel-report", "../libexec/brontes/brontes-kernel-report", "kernel-report/brontes-kernel-report"},
      words);
}

}  // namespace

int kernels(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json", "--compiled", "--isa"}, {"--device"}, std::nullopt});
  if (!parsed.problem.empty()) return report_misuse("kernels", parsed.problem);
  if (parsed.flag("--compiled")) return compiled(parsed);
  if (!parsed.positional.empty() || parsed.flag("--isa") || !parsed.options.empty()) {
    return report_misuse("kernels", "names, --isa and --device go with --compiled");
  }
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
