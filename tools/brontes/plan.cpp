#include "on_batch.hpp"

namespace tool {

const char* const plan_help =
    "Usage: brontes plan FILE [--recorded] [--format text|dot|json] [--json] [--device WHICH]\n"
    "\n"
    "Prints what a batch file would run: dispatches with the ops they fuse, barriers with their causes, and\n"
    "memory. Nothing is run.\n"
    "\n"
    "  --recorded      what was recorded, before it is planned\n"
    "  --format WHICH  text, Graphviz (dot) or json\n"
    "  --json          the same as --format json\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n";

int plan(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--recorded", "--json"}, {"--format", "--device"}, 1});
  const std::string name = parsed.flag("--json") ? "json" : parsed.option("--format");
  brontes::DumpFormat format = brontes::DumpFormat::text;
  if (name == "dot") {
    format = brontes::DumpFormat::dot;
  } else if (name == "json") {
    format = brontes::DumpFormat::json;
  } else if (!name.empty() && name != "text") {
    return report_misuse("plan", "--format is text, dot or json, not \"" + name + "\"");
  }
  return on_batch("plan", parsed, [&](const brontes::Device&, BatchFile& file) -> int {
    const bool recorded = parsed.flag("--recorded");
    const auto text = file.batch.dump(format, recorded ? brontes::DumpStage::recorded : brontes::DumpStage::planned);
    if (!text) return report(text.error());
    std::fputs(text->c_str(), stdout);
    return success;
  });
}

}  // namespace tool
