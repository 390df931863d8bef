#include "statistics.hpp"

#include <vector>

namespace kernel_report {
namespace {

struct Name {
  const char* name;
  std::uint64_t Usage::*member;  // several names of one member are added up
};

using Names = std::vector<Name>;

const Names radv = {
    {"VGPRs", &Usage::registers},       {"Spilled VGPRs", &Usage::spills},
    {"Spilled SGPRs", &Usage::spills},  {"Scratch size", &Usage::scratch_bytes},
    {"LDS size", &Usage::shared_bytes}, {"Subgroups per SIMD", &Usage::waves},
    {"Code size", &Usage::code_bytes},  {"Instructions", &Usage::instructions},
    {"Latency", &Usage::cycles},
};
const Names nvk = {
    {"Number of GPRs", &Usage::registers},
    {"Spills to memory", &Usage::spills},
    {"Fills from memory", &Usage::spills},
    {"SLM size", &Usage::scratch_bytes},
    {"Max warps/SM", &Usage::waves},
    {"Code size", &Usage::code_bytes},
    {"Instruction count", &Usage::instructions},
    {"Static cycle count", &Usage::cycles},
};
const Names anv = {
    {"Max live registers", &Usage::registers},
    {"Spills", &Usage::spills},
    {"Fills", &Usage::spills},
    {"Scratch Memory Size", &Usage::scratch_bytes},
    {"Workgroup Memory Size", &Usage::shared_bytes},
    {"Code size", &Usage::code_bytes},
    {"Instructions", &Usage::instructions},
    {"Cycles", &Usage::cycles},
};
const Names turnip = {
    {"Registers used", &Usage::registers}, {"STP Count", &Usage::spills},
    {"LDP Count", &Usage::spills},         {"Max Waves Per Core", &Usage::waves},
    {"Code size", &Usage::code_bytes},     {"Instruction Count", &Usage::instructions},
};
const Names honeykrisp = {
    {"GPRs", &Usage::registers},
    {"Spills", &Usage::spills},
    {"Fills", &Usage::spills},
    {"Scratch", &Usage::scratch_bytes},
    {"Threads", &Usage::waves},
    {"Code size", &Usage::code_bytes},
    {"Instructions", &Usage::instructions},
};

// Of drivers that are younger than the headers of Debian 12.
constexpr auto driver_id_nvk = static_cast<VkDriverId>(24);
constexpr auto driver_id_honeykrisp = static_cast<VkDriverId>(26);

const Names* names_of(VkDriverId driver) {
  if (driver == VK_DRIVER_ID_MESA_RADV) return &radv;
  if (driver == VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA) return &anv;
  if (driver == VK_DRIVER_ID_MESA_TURNIP) return &turnip;
  if (driver == driver_id_nvk) return &nvk;
  if (driver == driver_id_honeykrisp) return &honeykrisp;
  return nullptr;
}

}  // namespace

brontes::Result<Usage> usage_of(VkDriverId driver, const Statistics& statistics) {
  using brontes::Errc;
  using brontes::Error;
  const Names* names = names_of(driver);
  if (names == nullptr) return Error(Errc::unsupported, "what this driver calls its figures is not known");
  Usage usage;
  for (const Name& name : *names) {
    const auto found = statistics.find(name.name);
    if (found == statistics.end()) {
      return Error(Errc::unsupported, std::string("the driver has no statistic \"") + name.name + "\"");
    }
    usage.*name.member += found->second;
  }
  return usage;
}

}  // namespace kernel_report
