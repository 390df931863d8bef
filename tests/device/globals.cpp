// A program whose objects are globals, with work in flight when main() returns. They are destroyed after the driver's
// own globals. Run by the tests as a whole: it must end by itself, with status 0.
#include <brontes/brontes.hpp>

#include <cstdio>
#include <optional>

#include <unistd.h>

namespace {

// Made first, so destroyed last: what is left of the library then answers, and does not crash.
struct Last {
  std::optional<brontes::Device> device;
  std::optional<brontes::Buffer> buffer;
  std::optional<brontes::Batch> batch;
  std::optional<brontes::Program> program;
  brontes::Submission submission;

  void expect(bool held, const char* what) const {
    if (held) return;
    std::fprintf(stderr, "globals: not so: %s\n", what);
    _exit(3);
  }

  ~Last() {
    if (!program) return;
    expect(submission.ready(), "work of main() is done");
    expect(program->run().code == brontes::Errc::device_lost, "a run fails when the process ends");
    expect(batch->execute().code == brontes::Errc::device_lost, "a batch fails when the process ends");
    expect(buffer->read().error().code == brontes::Errc::device_lost, "a read fails when the process ends");
    expect(brontes::Buffer::create(*device, {4}).error().code == brontes::Errc::device_lost, "nor is there memory");
  }
};

Last last;
std::optional<brontes::Device> second;

}  // namespace

int main() {
  auto opened = brontes::Device::open();
  auto other = brontes::Device::open();
  if (!opened || !other) {
    std::fprintf(stderr, "globals: %s\n", (opened ? other : opened).error().message.c_str());
    return 1;
  }
  last.device.emplace(std::move(*opened));
  second.emplace(std::move(*other));
  auto buffer = brontes::Buffer::create(*last.device, {256, 256});
  if (!buffer) return 1;
  last.buffer.emplace(std::move(*buffer));
  last.batch.emplace(*last.device);
  auto x = last.batch->import_buffer(*last.buffer);
  last.batch->store(last.batch->matmul(last.batch->matmul(x, x), x), *last.buffer);
  auto program = last.batch->compile();
  if (!program) return 1;
  last.program.emplace(std::move(*program));
  if (last.program->run()) return 1;
  for (int i = 0; i < 20; ++i) {
    auto submission = last.program->submit();
    if (!submission) return 1;
    last.submission = *submission;
  }
  last.batch->relu(x);  // something for execute() to refuse
  return 0;
}
