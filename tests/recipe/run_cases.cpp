// Usage: run-cases ROOM
//
// Runs the cases of one room on the current driver, at random and at special values. Exit status 1 where a result is
// wrong or validation complains, 77 without a device.
#include "op_case.hpp"

#include <brontes/brontes.hpp>

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

using namespace brontes;

namespace {

std::string run(const Device& device, const cases::OpCase& c, const cases::Data& data) {
  Batch batch(device);
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < data.size(); ++i) {
    operands.push_back(cases::upload(batch, data[i], c.operands[i].shape, c.operands[i].type));
  }
  const Tensor result = c.record(batch, operands);
  if (const Error e = batch.execute()) return e.message;
  return cases::mismatch(batch, result, c.reference(data));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc == 2 ? argv[1] : "";
  std::atomic<int> problems{0};
  DeviceOptions options;
  options.validation = Toggle::on;
  options.pipeline_cache.enabled = false;
  options.on_message = [&](Severity severity, const std::string& text) {
    if (severity == Severity::info) return;
    ++problems;
    std::fprintf(stderr, "%s\n", text.c_str());
  };
  const auto device = Device::open(options);
  if (!device) {
    std::fprintf(stderr, "run-cases: %s\n", device.error().message.c_str());
    return 77;
  }
  int count = 0;
  for (const cases::NamedCaseRoom& room : cases::op_cases()) {
    if (room.name != wanted) continue;
    for (const cases::OpCase& c : room.room.cases()) {
      for (const bool special : {false, true}) {
        if (special && !c.special_values) continue;
        ++count;
        const std::string what = run(*device, c, special ? cases::special_data(c, 1) : cases::random_data(c, 1));
        if (what.empty()) continue;
        ++problems;
        std::fprintf(stderr, "%s%s: %s\n", c.name.c_str(), special ? ", special values" : "", what.c_str());
      }
    }
  }
  std::printf("%s: %d runs, %d problems\n", wanted.c_str(), count, problems.load());
  return count != 0 && problems == 0 ? 0 : 1;
}
