#include "fixture.hpp"

#include <catch2/catch_session.hpp>

#include <cstdio>

namespace {

std::unique_ptr<kernel_report::Compiler> shared_compiler;
constexpr int skipped = 77;

}  // namespace

const kernel_report::Compiler& brontes::test::compiler() { return *shared_compiler; }

int main(int argc, char** argv) {
  auto opened = kernel_report::Compiler::open();
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return skipped;
  }
  shared_compiler = std::move(*opened);
  if (brontes::test::radv_only && !shared_compiler->radv()) {
    std::fprintf(stderr, "%s is not RADV\n", shared_compiler->device().name.c_str());
    return skipped;
  }
  std::printf("%s, %s\n", shared_compiler->device().name.c_str(), shared_compiler->device().driver.c_str());
  const int result = Catch::Session().run(argc, argv);
  shared_compiler.reset();
  return result;
}
