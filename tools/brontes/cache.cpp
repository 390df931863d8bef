#include "commands.hpp"
#include "json.hpp"
#include "on_batch.hpp"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>

namespace tool {
namespace {

struct CacheFile {
  const char* what;
  std::string path;
  const char* state;
  std::string note;
  std::uint64_t bytes = 0;
  bool exists = false;
};

std::vector<CacheFile> files_of(const brontes::Device& device) {
  const brontes::PipelineCacheStatus cache = device.pipeline_cache();
  const brontes::TuningStatus tuning = device.tuning();
  std::vector<CacheFile> files = {{"pipelines", cache.path, brontes::to_string(cache.state), cache.note},
                                  {"tuning", tuning.path, brontes::to_string(tuning.state), tuning.note}};
  for (CacheFile& file : files) {
    std::error_code problem;
    const std::uintmax_t bytes = file.path.empty() ? 0 : std::filesystem::file_size(file.path, problem);
    file.exists = !file.path.empty() && !problem;
    if (file.exists) file.bytes = bytes;
  }
  return files;
}

void show(const std::vector<CacheFile>& files, bool as_json) {
  if (!as_json) {
    for (const CacheFile& file : files) {
      std::printf("%-9s  %-8s  %s", file.what, file.state, file.path.empty() ? "no file" : file.path.c_str());
      if (file.exists) std::printf(" (%s bytes)", std::to_string(file.bytes).c_str());
      std::printf("%s%s\n", file.note.empty() ? "" : ": ", file.note.c_str());
    }
    return;
  }
  Json json(std::cout);
  json.begin(nullptr, '{');
  for (const CacheFile& file : files) {
    json.begin(file.what, '{');
    json.put("state", file.state);
    json.put("path", file.path);
    json.put("note", file.note);
    json.put("exists", file.exists);
    json.put("bytes", file.bytes);
    json.end('}');
  }
  json.end('}');
  std::cout << '\n';
}

int clear(const std::vector<CacheFile>& files) {
  int status = success;
  for (const CacheFile& file : files) {
    if (!file.exists) continue;
    std::error_code problem;
    if (std::filesystem::remove(file.path, problem)) {
      std::printf("removed %s\n", file.path.c_str());
    } else {
      std::fprintf(stderr, "brontes cache: %s: %s\n", file.path.c_str(), problem.message().c_str());
      status = failure;
    }
  }
  return status;
}

}  // namespace

const char* const cache_help =
    "Usage: brontes cache show|clear [--json] [--device WHICH]\n"
    "\n"
    "Shows the files that the library keeps for a device, its compiled pipelines and what `brontes tune` has\n"
    "measured; or removes them.\n"
    "\n"
    "  --json          what `show` prints, as JSON\n"
    "  --device WHICH  an index, a part of the name, or a UUID; see `brontes devices`\n";

int cache(const Arguments& arguments) {
  const Parsed parsed = parse(arguments, {{"--json"}, {"--device"}, 1});
  if (!parsed.problem.empty()) return report_misuse("cache", parsed.problem);
  const std::string& verb = parsed.positional[0];
  if (verb != "show" && verb != "clear") return report_misuse("cache", "expected show or clear, not \"" + verb + "\"");
  brontes::DeviceOptions options;
  options.select = parsed.option("--device");
  options.pipeline_cache.save_on_close = false;
  const auto device = brontes::Device::open(options);
  if (!device) return report(device.error());
  const std::vector<CacheFile> files = files_of(*device);
  if (verb == "clear") return clear(files);
  show(files, parsed.flag("--json"));
  return success;
}

}  // namespace tool
