#include "on_batch.hpp"

#include <brontes/shadow.hpp>

#include <limits>

namespace tool {

const char* const check_help =
    "Usage: brontes check FILE [--every N] [--json] [--device WHICH]\n"
    "\n"
    "Runs a batch file one dispatch at a time, computes what each must give once more in double precision, and\n"
    "names the first that is wrong: its worst element, its operands and its kernel. Exits with 1 then.\n"
    "\n"
    "  --every N       checks one dispatch in N; all of them unless told\n"
    "  --json          the same as JSON\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n";

int check(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json"}, {"--every", "--device"}, 1});
  const std::uint64_t every = positive(parsed, "--every", 1);
  if (every == 0 || every > std::numeric_limits<std::uint32_t>::max()) {
    return report_misuse("check", "--every is a number above 0");
  }
  return on_batch("check", parsed, [&](const brontes::Device&, BatchFile& file) -> int {
    auto program = file.batch.compile();
    if (!program) return report(program.error());
    brontes::ShadowOptions options;
    options.every = static_cast<std::uint32_t>(every);
    const auto found = program->shadow_check(options);
    if (!found) return report(found.error());
    std::fputs((parsed.flag("--json") ? found->json() : found->text()).c_str(), stdout);
    return found->ok ? success : failure;
  });
}

}  // namespace tool
