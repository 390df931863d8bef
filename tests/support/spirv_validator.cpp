#include "spirv_validator.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>

// spirv-val is this library with a main(). A process for each of thousands of modules takes several times as long.
#if BRONTES_HAVE_SPIRV_TOOLS
#  include <spirv-tools/libspirv.hpp>
#else
#  include <unistd.h>

#  include <cstdio>
#  include <cstdlib>
#  include <fstream>
#  include <iterator>
#endif

namespace brontes::test {

#if BRONTES_HAVE_SPIRV_TOOLS

namespace {

spv_target_env environment_of(const std::vector<std::uint32_t>& module) {
  switch (module.size() > 1 ? module[1] : 0) {
    case 0x10400: return SPV_ENV_VULKAN_1_1_SPIRV_1_4;
    case 0x10500: return SPV_ENV_VULKAN_1_2;
    case 0x10600: return SPV_ENV_VULKAN_1_3;
    default: return SPV_ENV_VULKAN_1_1;
  }
}

}  // namespace

SpirvValidator::SpirvValidator() = default;
SpirvValidator::~SpirvValidator() = default;

std::string SpirvValidator::complaint(const std::vector<std::uint32_t>& module) const {
  spvtools::SpirvTools tools(environment_of(module));
  std::string said;
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t& position, const char* message) {
    said += "word " + std::to_string(position.index) + ": " + message + "\n";
  });
  if (tools.Validate(module)) return {};
  return said.empty() ? "the validator refused and said nothing" : std::move(said);
}

#else

namespace {

const char* environment_of(const std::vector<std::uint32_t>& module) {
  switch (module.size() > 1 ? module[1] : 0) {
    case 0x10400: return "vulkan1.1spv1.4";
    case 0x10500: return "vulkan1.2";
    case 0x10600: return "vulkan1.3";
    default: return "vulkan1.1";
  }
}

}  // namespace

SpirvValidator::SpirvValidator() {
  const char* named = std::getenv("BRONTES_SPIRV_VAL");
  program_ = named != nullptr ? named : "spirv-val";
  if (std::system(("'" + program_ + "' --version >/dev/null 2>&1").c_str()) != 0) {
    SKIP(program_ << " does not run: nothing here checks the modules");
  }
  const char* folder = std::getenv("TMPDIR");
  path_ = std::string(folder != nullptr ? folder : "/tmp") + "/brontes-spirv-" + std::to_string(getpid());
}

SpirvValidator::~SpirvValidator() {
  std::remove(path_.c_str());
  std::remove((path_ + ".txt").c_str());
}

std::string SpirvValidator::complaint(const std::vector<std::uint32_t>& module) const {
  std::ofstream(path_, std::ios::binary)
      .write(reinterpret_cast<const char*>(module.data()),
             static_cast<std::streamsize>(module.size() * sizeof(std::uint32_t)));
  const std::string said = path_ + ".txt";
  const std::string command =
      "'" + program_ + "' --target-env " + environment_of(module) + " '" + path_ + "' >'" + said + "' 2>&1";
  if (std::system(command.c_str()) == 0) return {};
  std::ifstream file(said);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.empty() ? "spirv-val failed and said nothing" : text;
}

#endif

}  // namespace brontes::test
