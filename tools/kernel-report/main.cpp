// Usage: kernel-report [--target TARGET] [--json | --markdown | --isa] [PART-OF-A-NAME... | --spirv FILE]
//
// What the compiler of the current driver makes of the library's kernels: registers, spills, occupancy,
// instructions. Nothing is executed, so RADV's null device will do, and so will the compilers that tools/setup
// --with-gpu-compilers fetches, which run under tools/with-driver:
//
//   kernel-report --target radv matmul/tiled
//   kernel-report --target intel-dg2
//   kernel-report --target amd-navi21 --spirv somebody-elses.spv
//
// Exit status: 0; 1 if something went wrong or a pipeline spills; 2 for bad arguments; 77 if no driver tells.
//
// Without BRONTES_WITH_DRIVER it is what `brontes kernels --compiled` runs: there is no --target, and no driver that
// tells is exit status 1.
#include "arguments.hpp"
#include "cases.hpp"
#include "compiler.hpp"
#include "json.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using kernel_report::Case;
using kernel_report::Figures;
using kernel_report::Instructions;

enum class Format { text, markdown, json, isa };

constexpr const char* usage =
    "usage: kernel-report [--target TARGET] [--json | --markdown | --isa] [PART-OF-A-NAME... | --spirv FILE]\n"
    "Figures of the library's pipelines from the current driver's compiler; --isa for their code. --spirv: of another\n"
    "module, with its constants as they are, storage buffers at bindings 0 to 15, and 128 bytes of push constants.\n"
#ifdef BRONTES_WITH_DRIVER
    "Without a GPU: --target radv, and after tools/setup --with-gpu-compilers nvidia-ada, amd-navi21, amd-navi31,\n"
    "amd-gfx1201, intel-dg2, intel-lnl, adreno-740 or apple-m1.\n"
#endif
    ;

unsigned long long number(std::uint64_t value) { return value; }

// Multiply-adds among all instructions that one turn of the outermost loop executes.
double executed_fma_share(const Case& c, const Figures& f) {
  const Instructions& hot = f.isa.hot_loop;
  const Instructions& around = f.isa.around_hot_loop;
  if (around.total == 0) return hot.fma_share();
  if (c.hot_loop_turns == 0) return 0;
  const double turns = c.hot_loop_turns;
  return (static_cast<double>(around.fma) + turns * static_cast<double>(hot.fma)) /
         (static_cast<double>(around.total) + turns * static_cast<double>(hot.total));
}

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f%%", 100 * share);
  return text;
}

void print_header(Format format, tool::Json& json, const brontes::DeviceInfo& device) {
  if (format == Format::json) {
    json.begin(nullptr, '{');
    json.put("device", device.name);
    json.put("driver", device.driver);
    json.begin("pipelines", '[');
  } else if (format == Format::text) {
    std::printf("%s, %s\n%-45s %5s %6s %7s %6s %5s %5s %6s %6s %9s %9s %9s\n", device.name.c_str(),
                device.driver.c_str(), "pipeline", "regs", "spills", "scratch", "shared", "waves", "lanes", "bytes",
                "instr", "FMA", "hot loop", "k loop");
  } else if (format == Format::markdown) {
    std::printf("%s, %s\n\n", device.name.c_str(), device.driver.c_str());
    std::printf(
        "| pipeline | registers | spilled, scratch | shared | waves | code bytes | instructions | FMA | hot loop | k "
        "loop |\n");
    std::printf("|---|---|---|---|---|---|---|---|---|---|\n");
  }
}

void put(tool::Json& json, const char* name, const Instructions& i) {
  json.begin(name, '{');
  json.put("instructions", i.total);
  json.put("fma", i.fma);
  json.put("vector", i.vector);
  json.put("memory", i.memory);
  json.put("lds", i.lds);
  json.put("waits", i.waits);
  json.end('}');
}

void put(tool::Json& json, const Case& c, const Figures& f) {
  json.begin(nullptr, '{');
  json.put("name", c.name);
  if (!c.constants.empty()) {
    const brontes::kernels::Kernel& kernel = brontes::kernels::get(c.kernel);
    json.put("kernel", kernel.name);
    json.begin("constants", '{');
    for (std::size_t i = 0; i < c.constants.size(); ++i) json.put(kernel.constants[i].name, c.constants[i]);
    json.end('}');
  }
  json.put("registers", f.usage.registers);
  json.put("spills", f.usage.spills);
  json.put("scratch_bytes", f.usage.scratch_bytes);
  json.put("shared_bytes", f.usage.shared_bytes);
  json.put("waves", f.usage.waves);
  json.put("subgroup_size", f.subgroup_size);
  json.put("code_bytes", f.usage.code_bytes);
  json.put("instructions", f.usage.instructions);
  json.put("cycles", f.usage.cycles);
  json.begin("statistics", '{');
  for (const auto& [name, value] : f.statistics) json.put(name.c_str(), value);
  json.end('}');
  put(json, "isa", f.isa.all);
  put(json, "hot_loop", f.isa.hot_loop);
  put(json, "around_hot_loop", f.isa.around_hot_loop);
  json.end('}');
}

void print(Format format, tool::Json& json, const Case& c, const Figures& f, bool first) {
  const Instructions& hot = f.isa.hot_loop;
  const double executed = executed_fma_share(c, f);
  const std::string hot_share = hot.total == 0 ? "-" : std::to_string(hot.fma) + "/" + std::to_string(hot.total);
  const std::string k_share = hot.total == 0 || executed == 0 ? "-" : percent(executed);
  const std::string all_share = f.isa.all.total == 0 ? "-" : percent(f.isa.all.fma_share());
  const kernel_report::Usage& u = f.usage;
  switch (format) {
    case Format::json: return put(json, c, f);
    case Format::isa: std::printf("%s== %s\n%s", first ? "" : "\n", c.name.c_str(), f.assembly.c_str()); return;
    case Format::text:
      std::printf("%-45s %5llu %6llu %7llu %6llu %5llu %5u %6llu %6llu %9s %9s %9s\n", c.name.c_str(),
                  number(u.registers), number(u.spills), number(u.scratch_bytes), number(u.shared_bytes),
                  number(u.waves), f.subgroup_size, number(u.code_bytes), number(u.instructions), all_share.c_str(),
                  hot_share.c_str(), k_share.c_str());
      break;
    case Format::markdown:
      std::printf("| %s | %llu | %llu, %llu | %llu | %llu | %llu | %llu | %s | %s | %s |\n", c.name.c_str(),
                  number(u.registers), number(u.spills), number(u.scratch_bytes), number(u.shared_bytes),
                  number(u.waves), number(u.code_bytes), number(u.instructions), all_share.c_str(), hot_share.c_str(),
                  k_share.c_str());
      break;
  }
}

// A module of somebody else's.
brontes::Result<Figures> compile_file(const kernel_report::Compiler& compiler, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
  if (words.empty()) return brontes::Error(brontes::Errc::io, "cannot read " + path);
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint32_t));
  std::vector<std::uint32_t> bindings(16);
  std::iota(bindings.begin(), bindings.end(), 0u);
  return compiler.compile(words, bindings, 128, 0);
}

bool wanted(const std::string& name, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (name.find(part) != std::string::npos) return true;
  }
  return parts.empty();
}

#ifdef BRONTES_WITH_DRIVER
// This program again, with the same arguments, under a driver of tools/with-driver.
int run_with(const std::string& target, const char* name, const tool::Parsed& parsed) {
  std::error_code error;
  std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) self = name;
  std::vector<std::string> words{BRONTES_WITH_DRIVER, target, "--", self};
  words.insert(words.end(), parsed.flags.begin(), parsed.flags.end());
  words.insert(words.end(), parsed.positional.begin(), parsed.positional.end());
  if (const std::string spirv = parsed.option("--spirv"); !spirv.empty()) words.insert(words.end(), {"--spirv", spirv});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  std::perror("kernel-report: tools/with-driver");
  return 1;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  tool::Syntax syntax{{"--json", "--markdown", "--isa", "--help", "-h"}, {"--spirv"}, std::nullopt};
#ifdef BRONTES_WITH_DRIVER
  syntax.options.emplace_back("--target");
#endif
  const tool::Parsed parsed = tool::parse(tool::Arguments(argv + std::min(argc, 1), argv + argc), syntax);
  if (!parsed.problem.empty()) {
    std::fprintf(stderr, "kernel-report: %s\n%s", parsed.problem.c_str(), usage);
    return 2;
  }
  if (parsed.flag("--help") || parsed.flag("-h")) {
    std::fputs(usage, stdout);
    return 0;
  }
  const Format format = parsed.flag("--isa")        ? Format::isa
                        : parsed.flag("--markdown") ? Format::markdown
                        : parsed.flag("--json")     ? Format::json
                                                    : Format::text;

#ifdef BRONTES_WITH_DRIVER
  if (const std::string target = parsed.option("--target"); !target.empty()) return run_with(target, argv[0], parsed);
#endif

  auto compiler = kernel_report::Compiler::open();
  if (!compiler) {
    std::fprintf(stderr, "kernel-report: %s\n", compiler.error().message.c_str());
#ifdef BRONTES_WITH_DRIVER
    return 77;
#else
    return 1;
#endif
  }
  const std::string spirv = parsed.option("--spirv");
  auto cases = spirv.empty() ? kernel_report::all_cases((*compiler)->traits())
                             : brontes::Result<std::vector<Case>>({Case{spirv, brontes::kernels::Id{}, {}}});
  if (!cases) {
    std::fprintf(stderr, "kernel-report: %s\n", cases.error().message.c_str());
    return 1;
  }
  tool::Json json(std::cout);
  print_header(format, json, (*compiler)->device());
  bool first = true;
  std::size_t spilling = 0;
  for (const Case& c : *cases) {
    if (!wanted(c.name, parsed.positional)) continue;
    const auto figures = spirv.empty() ? (*compiler)->compile(brontes::kernels::get(c.kernel), c.constants)
                                       : compile_file(**compiler, spirv);
    if (!figures) {
      std::fprintf(stderr, "kernel-report: %s: %s\n", c.name.c_str(), figures.error().message.c_str());
      return 1;
    }
    print(format, json, c, *figures, first);
    std::fflush(stdout);
    first = false;
    if (figures->usage.spilling()) ++spilling;
  }
  if (format == Format::json) {
    json.end(']');
    json.end('}');
    std::cout << "\n";
  }
  if (spilling != 0) std::fprintf(stderr, "kernel-report: %zu pipelines spill or use scratch memory\n", spilling);
  return spilling == 0 ? 0 : 1;
}
