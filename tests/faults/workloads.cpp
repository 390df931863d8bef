// What programs do, with everything failing in turn. Sizes are small: what matters is which calls are made.
#include "worlds.hpp"

#include <brontes/vulkan.hpp>

#include <catch2/catch_test_macros.hpp>

#include "accumulate.spv.h"

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace brontes::test {
namespace {

class Opening final : public Workload {
 public:
  explicit Opening(const DeviceOptions& options) : options_(options) {}
  Error run() override { return Device::open(options_).error(); }

 private:
  DeviceOptions options_;
};

class Listing final : public Workload {
 public:
  explicit Listing(const DeviceOptions&) {}
  Error run() override {
    const auto list = Device::list();
    if (list && list->empty()) wrong("no device is listed");
    return list.error();
  }
};

/// From open to close, with files, and work that is still in flight at the end.
class WholeLife final : public Workload {
 public:
  explicit WholeLife(DeviceOptions options) : options_(std::move(options)), data_(counting(256)), out_(256) {
    directory_ = std::filesystem::temp_directory_path() / ("brontes-faults-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    options_.pipeline_cache.enabled = true;
    options_.pipeline_cache.path = (directory_ / "cache").string();
    options_.tuning.enabled = true;
    options_.tuning.path = (directory_ / "tuning").string();
  }
  ~WholeLife() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  Error run() override {
    auto device = Device::open(options_);
    if (!device) return device.error();
    auto buffer = Buffer::from(*device, data_);
    if (!buffer) return buffer.error();
    Batch batch(*device);
    const Tensor y = batch.neg(batch.import_buffer(*buffer));
    if (Error e = batch.execute()) return e;
    if (Error e = batch.read(y, Span<float>(out_))) return e;
    if (out_[255] != -255.0f) wrong("neg");
    batch.store(batch.scale(y, 2.0f), *buffer);
    return batch.submit().error();
  }

 private:
  std::filesystem::path directory_;
  DeviceOptions options_;
  std::vector<float> data_;
  std::vector<float> out_;
};

class Adopting final : public OnDevice {
 public:
  explicit Adopting(const DeviceOptions& options)
      : OnDevice(options), options_(options), data_(counting(64)), out_(64) {
    const vulkan::Handles h = vulkan::handles(device_);
    external_ = {h.get_instance_proc_addr, h.instance, h.physical_device, h.device, h.queue, h.queue_family, false};
    options_.access = AccessMode::storage;
  }
  Error run() override {
    auto adopted = vulkan::adopt(external_, options_);
    if (!adopted) return adopted.error();
    Batch batch(*adopted);
    const Tensor y = batch.neg(batch.upload(Span<const float>(data_)));
    if (Error e = batch.execute()) return e;
    if (Error e = batch.read(y, Span<float>(out_))) return e;
    if (out_[63] != -63.0f) wrong("neg on an adopted device");
    return {};
  }
  // The host application's own device knows nothing of the loss.
  const Device* device() const override { return nullptr; }

 private:
  DeviceOptions options_;
  vulkan::ExternalDevice external_;
  std::vector<float> data_;
  std::vector<float> out_;
};

class UserKernels final : public OnDevice {
 public:
  explicit UserKernels(const DeviceOptions& options) : OnDevice(options), data_(counting(40)), out_(40) {}
  Error run() override {
    auto kernel = Kernel::from_spirv(device_, accumulate_spv);
    if (!kernel) return kernel.error();
    Batch batch(device_);
    const Tensor x = batch.upload(Span<const float>(data_));
    const Tensor y = batch.call(*kernel, {x, x}, x.shape(), {2});
    const std::vector<Tensor> all = batch.call_all(*kernel, {y, x}, {x.shape()}, {2});
    if (batch.error() || all.empty()) {
      Error e = batch.clear_error();
      if (!e) wrong("a call that failed left no error");
      return e;
    }
    if (Error e = batch.execute()) return e;
    if (Error e = batch.read(all[0], Span<float>(out_))) return e;
    if (out_[39] != 3 * 39.0f) wrong("two calls");
    return {};
  }

 private:
  std::vector<float> data_;
  std::vector<float> out_;
};

class Buffers final : public OnDevice {
 public:
  explicit Buffers(const DeviceOptions& options) : OnDevice(options), data_(counting(1000)), out_(1000) {}
  Error run() override {
    auto zeros = Buffer::create(device_, Shape(1000));
    if (!zeros) return zeros.error();
    if (Error e = zeros->read(out_)) return e;
    if (out_[999] != 0.0f) wrong("a new buffer is not zero");
    auto buffer = Buffer::from(device_, data_);
    if (!buffer) return buffer.error();
    if (Error e = buffer->write(Span<const float>(data_.data(), 10), 990)) return e;
    if (Error e = buffer->read(out_)) return e;
    if (out_[989] != 989.0f || out_[999] != 9.0f) wrong("written elements");
    auto all = buffer->read();
    if (all && (*all)[999] != 9.0f) wrong("read() of all");
    if (!all) return all.error();
    auto integers = Buffer::from(device_, Span<const std::int32_t>(integers_));
    if (!integers) return integers.error();
    if (Error e = integers->write(Span<const std::int32_t>(integers_.data(), 1), 2)) return e;
    auto read = integers->read_i32();
    if (read && (*read)[2] != -7) wrong("integers");
    return read.error();
  }

 private:
  std::vector<float> data_;
  std::vector<float> out_;
  std::vector<std::int32_t> integers_{-7, 8, 9};
};

class Elementwise final : public OnDevice {
 public:
  explicit Elementwise(const DeviceOptions& options) : OnDevice(options), data_(counting(300)), out_(300) {}
  Error run() override {
    Batch batch(device_);
    const Tensor x = batch.upload(Span<const float>(data_));
    const Tensor kept = batch.keep(batch.scale(batch.relu(x), 2.0f));
    const Tensor y = batch.add(kept, batch.fill(1.0f, Shape(1)));
    if (Error e = batch.execute()) return e;
    if (Error e = batch.read(y, Span<float>(out_))) return e;
    if (out_[299] != 599.0f) wrong("a fused chain");
    if (Error e = batch.read(kept, Span<float>(out_))) return e;
    if (out_[299] != 598.0f) wrong("a kept value");
    return {};
  }

 private:
  std::vector<float> data_;
  std::vector<float> out_;
};

class Reductions final : public OnDevice {
 public:
  explicit Reductions(const DeviceOptions& options) : OnDevice(options), data_(counting(5000)) {}
  Error run() override {
    Batch batch(device_);
    const Tensor x = batch.upload(Span<const float>(data_));
    const Tensor most = batch.max(x);
    const Tensor sum = batch.sum(batch.scale(x, 0.5f));
    const Tensor dot = batch.dot(x, x);
    if (Error e = batch.execute()) return e;
    for (const auto& [tensor, want] :
         {std::pair(most, 4999.0), std::pair(sum, 6248750.0), std::pair(dot, 41654167500.0)}) {
      float got = 0;
      if (Error e = batch.read(tensor, Span<float>(&got, 1))) return e;
      if (std::abs(static_cast<double>(got) - want) > want * 1e-5) wrong("a reduction");
    }
    return {};
  }

 private:
  std::vector<float> data_;
};

class Products final : public OnDevice {
 public:
  explicit Products(const DeviceOptions& options) : OnDevice(options), ones_(64 * 64, 1.0f), out_(64 * 64) {}
  Error run() override {
    Batch batch(device_);
    const Tensor a = batch.upload(Span<const float>(ones_), Shape(64, 64));
    const Tensor bias = batch.upload(Span<const float>(ones_.data(), 64));
    const Tensor y = batch.relu(batch.linear(a, a, bias));
    MatmulOptions naive;
    naive.kernel = MatmulKernel::naive;
    const Tensor z = batch.matmul(a, a, naive);
    const Tensor row = batch.matmul(batch.upload(Span<const float>(ones_.data(), 64), Shape(1, 64)), a);
    if (Error e = batch.execute()) return e;
    if (Error e = batch.read(y, Span<float>(out_))) return e;
    if (out_[4095] != 65.0f) wrong("linear");
    if (Error e = batch.read(z, Span<float>(out_))) return e;
    if (out_[4095] != 64.0f) wrong("matmul");
    if (Error e = batch.read(row, Span<float>(out_.data(), 64))) return e;
    if (out_[63] != 64.0f) wrong("one row");
    return {};
  }

 private:
  std::vector<float> ones_;
  std::vector<float> out_;
};

/// A batch that goes on after execute(), is reset and used again.
class Incremental final : public OnDevice {
 public:
  explicit Incremental(const DeviceOptions& options)
      : OnDevice(options), batch_(device_), data_(counting(300)), out_(300) {}
  Error run() override {
    batch_.reset();
    const Tensor x = batch_.upload(Span<const float>(data_));
    const Tensor y = batch_.keep(batch_.offset(x, 1.0f));
    if (Error e = batch_.execute()) return e;
    const Tensor z = batch_.add(y, x);
    if (Error e = batch_.execute()) return e;
    if (Error e = batch_.read(z, Span<float>(out_))) return e;
    if (out_[299] != 599.0f) wrong("a second execute");
    if (Error e = batch_.read(y, Span<float>(out_))) return e;
    if (out_[299] != 300.0f) wrong("a value of the first execute");
    return {};
  }

 private:
  Batch batch_;
  std::vector<float> data_;
  std::vector<float> out_;
};

/// state += 1 in several parts. A failed execute() is repeated on the same batch, and adds no second time.
class SplitStores final : public OnDevice {
 public:
  explicit SplitStores(const DeviceOptions& options)
      : OnDevice(options), state_(Buffer::create(device_, Shape(64)).value()), out_(64) {
    if (state_.read(out_)) wrong("set-up");
  }
  Error run() override {
    BatchOptions options;
    options.work_per_submit = 1;
    options.fuse = false;
    if (!batch_) {
      batch_.emplace(device_, options);
      const Tensor x = batch_->import_buffer(state_);
      batch_->store(batch_->offset(batch_->offset(batch_->offset(x, 1.0f), 1.0f), -1.0f), state_);
    }
    if (batch_->error()) {
      // Recording lacked memory: a fresh batch, as nothing has run.
      Error e = batch_->clear_error();
      batch_.reset();
      return e;
    }
    if (Error e = batch_->execute()) return e;
    batch_.reset();
    ++expected_;
    if (Error e = state_.read(out_)) return e;
    if (out_[0] != expected_ || out_[63] != expected_) wrong("a store was applied twice, or not at all");
    return {};
  }

 private:
  Buffer state_;
  std::optional<Batch> batch_;
  std::vector<float> out_;
  float expected_ = 0;
};

/// Slices of a buffer, stored to and imported: a call that fails has recorded nothing.
class Slices final : public OnDevice {
 public:
  explicit Slices(const DeviceOptions& options)
      : OnDevice(options), cache_(Buffer::create(device_, Shape(8, 6)).value()), row_(counting(6)), out_(48) {
    if (cache_.read(out_)) wrong("set-up");
  }
  Error run() override {
    Batch batch(device_);
    const Tensor row = batch.upload(Span<const float>(row_));
    const std::uint64_t before = batch.num_operations();
    batch.store(row, cache_, {{2, 4}});  // of which there are two: an expansion and a store
    if (batch.num_operations() != before + (batch.error() ? 0 : 2)) wrong("half of a store is recorded");
    batch.store(row, cache_, {Range::at(-1), Range::reversed()});
    const Tensor y = batch.neg(batch.import_buffer(cache_, {{2, 8}}));
    if (Error e = batch.execute()) return e;
    if (Error e = batch.read(y, Span<float>(out_.data(), 36))) return e;
    if (out_[7] != -1.0f || out_[12] != 0.0f || out_[30] != -5.0f) wrong("an imported slice");
    if (Error e = cache_.read(out_)) return e;
    if (out_[11] != 0.0f || out_[23] != 5.0f || out_[24] != 0.0f || out_[42] != 5.0f) wrong("a store to a slice");
    return {};
  }

 private:
  Buffer cache_;
  std::vector<float> row_;
  std::vector<float> out_;
};

class Compiling final : public OnDevice {
 public:
  explicit Compiling(const DeviceOptions& options) : OnDevice(options), data_(counting(300)), out_(300) {}
  Error run() override {
    Batch batch(device_);
    const Tensor x = batch.upload(Span<const float>(data_));
    const Tensor y = batch.neg(x);
    auto program = batch.compile();
    if (!program) return program.error();
    if (Error e = program->run()) return e;
    if (Error e = program->read(y, Span<float>(out_))) return e;
    if (out_[299] != -299.0f) wrong("a program's first run");
    if (program->dump().empty() || !batch.dump()) return Error(Errc::out_of_memory, "no dump");
    return {};
  }

 private:
  std::vector<float> data_;
  std::vector<float> out_;
};

/// A program made beforehand: write, run, read.
class Replaying final : public OnDevice {
 public:
  explicit Replaying(const DeviceOptions& options)
      : OnDevice(options), batch_(device_), data_(counting(300)), out_(300) {
    x_ = batch_.upload(Span<const float>(data_));
    y_ = batch_.neg(x_);
    program_.emplace(batch_.compile().value());
  }
  Error run() override {
    data_[299] += 1.0f;
    if (Error e = program_->write(x_, Span<const float>(data_))) return e;
    if (Error e = program_->run()) return e;
    if (Error e = program_->read(y_, Span<float>(out_))) return e;
    if (out_[299] != -data_[299] || out_[7] != -7.0f) wrong("a replay");
    return {};
  }

 private:
  Batch batch_;
  Tensor x_, y_;
  std::optional<Program> program_;
  std::vector<float> data_;
  std::vector<float> out_;
};

/// A program goes from buffer to buffer. After a failed rebind() it still uses the last one.
class Rebinding final : public OnDevice {
 public:
  explicit Rebinding(const DeviceOptions& options)
      : OnDevice(options),
        buffers_{Buffer::from(device_, std::vector<float>(64, 1.0f)).value(),
                 Buffer::from(device_, std::vector<float>(64, 2.0f)).value()},
        batch_(device_),
        out_(64) {
    x_ = batch_.import_buffer(buffers_[0]);
    y_ = batch_.neg(x_);
    program_.emplace(batch_.compile().value());
  }
  Error run() override {
    const Error rebound = program_->rebind(x_, buffers_[1 - bound_]);
    if (!rebound) bound_ = 1 - bound_;
    Error ran = program_->run();
    if (!ran) ran = program_->read(y_, Span<float>(out_));
    if (!ran && out_[63] != -static_cast<float>(bound_ + 1)) wrong("the program runs on a buffer that is not bound");
    return rebound ? rebound : ran;
  }

 private:
  std::array<Buffer, 2> buffers_;
  Batch batch_;
  Tensor x_, y_;
  std::optional<Program> program_;
  std::vector<float> out_;
  std::size_t bound_ = 0;
};

/// A program over values of an earlier execution, whose batch goes on meanwhile.
class AfterReset final : public OnDevice {
 public:
  explicit AfterReset(const DeviceOptions& options)
      : OnDevice(options), batch_(device_), data_(counting(300)), out_(300) {
    const Tensor y = batch_.keep(batch_.offset(batch_.upload(Span<const float>(data_)), 1.0f));
    if (batch_.execute()) wrong("set-up");
    z_ = batch_.offset(y, 0.0f);
    program_.emplace(batch_.compile().value());
  }
  Error run() override {
    batch_.reset();
    const Tensor other = batch_.scale(batch_.upload(Span<const float>(data_)), 777.0f);
    if (Error e = batch_.execute()) return e;
    if (Error e = program_->run()) return e;
    if (Error e = program_->read(z_, Span<float>(out_))) return e;
    if (out_[5] != 6.0f || out_[299] != 300.0f) wrong("the values of the first execution were overwritten");
    if (Error e = batch_.read(other, Span<float>(out_))) return e;
    if (out_[299] != 777.0f * 299.0f) wrong("the batch after reset()");
    return {};
  }

 private:
  Batch batch_;
  Tensor z_;
  std::optional<Program> program_;
  std::vector<float> data_;
  std::vector<float> out_;
};

class CachedProducts final : public OnDevice {
 public:
  explicit CachedProducts(const DeviceOptions& options)
      : OnDevice(options), cache_(device_), ones_(64 * 32, 1.0f), stored_(64 * 32 * 2), out_(64 * 4), bias_(64, 2.0f) {
    for (std::size_t i = 0; i < stored_.size(); i += 2) stored_[i + 1] = std::byte{0x3c};  // 1.0 in f16
  }
  Error run() override {
    constexpr std::array<const char*, 5> names{"f32", "f16", "bf16", "q8_0", "q4_0"};
    constexpr std::array<DType, 5> types{DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0};
    const Span<const float> input(ones_.data(), 32 * 4);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!cache_.contains(names[i])) {
        if (Error e = cache_.upload_weight(names[i], ones_, 64, 32, types[i])) return e;
      }
      MatmulEpilogue epilogue;
      epilogue.activation = Activation::relu;
      if (Error e = cache_.matmul(names[i], input, out_, 4, epilogue)) return e;
      if (std::abs(out_[255] - 32.0f) > 0.1f) wrong("a cached product");
    }
    if (!cache_.contains("other")) {
      if (Error e = cache_.upload_weight("other", ones_, 64, 32)) return e;
    }
    if (Error e = cache_.replace_weight("other", ones_, 64, 32, DType::f32, bias_)) return e;
    if (Error e = cache_.matmul("other", Span<const float>(ones_.data(), 32), Span<float>(out_.data(), 64), 1))
      return e;
    if (out_[63] != 34.0f) wrong("a replaced weight");
    if (!cache_.contains("stored")) {
      if (Error e = cache_.upload_stored("stored", stored_, 64, 32, DType::f16)) return e;
    }
    if (Error e = cache_.replace_stored("stored", stored_, 64, 32, DType::f16, bias_)) return e;
    if (Error e = cache_.matmul("stored", Span<const float>(ones_.data(), 32), Span<float>(out_.data(), 64), 1))
      return e;
    if (out_[63] != 34.0f) wrong("a replaced weight, as stored");
    if (const auto info = cache_.info("stored"); !info) return info.error();
    if (const auto weight = cache_.weight("stored"); !weight) return weight.error();
    if (!cache_.evict("q4_0")) wrong("an evicted weight was not there");
    cache_.trim();
    if (cache_.weight_count() != 6) wrong("a weight was lost");
    return {};
  }

 private:
  MatmulCache cache_;
  std::vector<float> ones_;
  std::vector<std::byte> stored_;
  std::vector<float> out_;
  std::vector<float> bias_;
};

class Weights final : public OnDevice {
 public:
  explicit Weights(const DeviceOptions& options)
      : OnDevice(options), ones_(64 * 32, 1.0f), stored_(64 * 32 * 2), out_(64) {
    for (std::size_t i = 0; i < stored_.size(); i += 2) stored_[i + 1] = std::byte{0x3c};  // 1.0 in f16
  }
  Error run() override {
    auto plain = Weight::from(device_, ones_, 64, 32, DType::q8_0);
    if (!plain) return plain.error();
    auto turned = Weight::from_transposed(device_, ones_, 64, 32);
    if (!turned) return turned.error();
    auto stored = Weight::from_stored(device_, stored_, 64, 32, DType::f16);
    if (!stored) return stored.error();
    for (const Weight* weight : {&*plain, &*turned, &*stored}) {
      Batch batch(device_);
      const Tensor x = batch.upload(Span<const float>(ones_.data(), 32), Shape(1, 32));
      const Tensor y = batch.linear(x, batch.import_weight(*weight));
      if (Error e = batch.execute()) return e;
      if (Error e = batch.read(y, Span<float>(out_))) return e;
      if (std::abs(out_[63] - 32.0f) > 0.1f) wrong("a product with a weight");
    }
    return {};
  }

 private:
  std::vector<float> ones_;
  std::vector<std::byte> stored_;
  std::vector<float> out_;
};

class Tuning final : public OnDevice {
 public:
  explicit Tuning(const DeviceOptions& options) : OnDevice(options), path_(options.tuning.path) {
    tune_.shapes = {{1, 32, 32, Layout::nk}};
    tune_.seconds = 0.02;
    tune_.compare_access = false;
  }
  ~Tuning() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Error run() override {
    const auto report = tune_matmul(device_, tune_);
    if (report && report->path.empty() && report->note.empty()) wrong("no file, and no word why");
    return report.error();
  }

 private:
  std::string path_;
  TuneOptions tune_;
};

class SavingCaches final : public OnDevice {
 public:
  explicit SavingCaches(const DeviceOptions& options) : OnDevice(options) {}
  ~SavingCaches() override {
    std::error_code ignored;
    std::filesystem::remove(device_.pipeline_cache().path, ignored);
  }
  Error run() override { return device_.save_pipeline_cache(); }
};

/// Everything goes while the device works on it.
class DestroyedInFlight final : public OnDevice {
 public:
  explicit DestroyedInFlight(const DeviceOptions& options) : OnDevice(options), data_(counting(30000)) {}
  Error run() override {
    Submission last;
    {
      auto buffer = Buffer::from(device_, data_);
      if (!buffer) return buffer.error();
      Batch batch(device_);
      const Tensor x = batch.import_buffer(*buffer);
      batch.store(batch.gelu(batch.tanh(x)), *buffer);
      auto program = batch.compile();
      if (!program) return program.error();
      for (int i = 0; i < 4; ++i) {
        auto submitted = program->submit(last);
        if (!submitted) return submitted.error();
        last = *submitted;
      }
      auto submitted = batch.submit();
      if (!submitted) return submitted.error();
      last = *submitted;
    }
    while (!last.ready()) {
      if (Error e = last.wait(std::chrono::milliseconds(1)); e && e.code != Errc::timeout) return e;
    }
    return last.wait();
  }

 private:
  std::vector<float> data_;
};

/// Two threads take turns with programs that each add one to the same buffer. What is there in the end is the number
/// of submits that succeeded.
class TakingTurns final : public OnDevice {
 public:
  explicit TakingTurns(const DeviceOptions& options)
      : OnDevice(options), state_(Buffer::create(device_, Shape(16)).value()), out_(16) {
    BatchOptions split;
    split.work_per_submit = 1;
    split.fuse = false;
    for (auto& program : programs_) {
      Batch batch(device_, split);
      const Tensor x = batch.import_buffer(state_);
      batch.store(batch.offset(batch.offset(x, 2.0f), -1.0f), state_);
      program.emplace(batch.compile().value());
    }
  }
  Error run() override {
    Submission last;
    Error error;
    std::mutex mutex;
    auto work = [&](Program& program) {
      for (int i = 0; i < 5; ++i) {
        const std::lock_guard lock(mutex);
        auto submitted = program.submit(last);
        if (submitted) {
          last = *submitted;
          expected_ += 1.0f;
        } else if (!error) {
          error = submitted.error();
        }
      }
    };
    std::thread other(work, std::ref(*programs_[0]));
    work(*programs_[1]);
    other.join();
    Error waited = last.wait();
    if (!waited) waited = state_.read(out_);
    if (!waited && out_[15] != expected_) wrong("submits were lost, or applied twice");
    return error ? error : waited;
  }

 private:
  Buffer state_;
  std::array<std::optional<Program>, 2> programs_;
  std::vector<float> out_;
  float expected_ = 0;
};

class OneShots final : public OnDevice {
 public:
  explicit OneShots(const DeviceOptions& options) : OnDevice(options), data_(counting(100)), out_(100) {}
  Error run() override {
    if (Error e = ops::relu(device_, data_, out_)) return e;
    if (out_[99] != 99.0f) wrong("relu");
    const auto sum = ops::sum(device_, data_);
    if (sum && *sum != 4950.0f) wrong("sum");
    if (!sum) return sum.error();
    return ops::matmul(device_, data_, data_, out_, 10, 10, 10);
  }

 private:
  std::vector<float> data_;
  std::vector<float> out_;
};

}  // namespace

TEST_CASE("whatever fails in Device::list", "[faults]") { inject_one<Listing>("Device::list"); }
TEST_CASE("whatever fails in Device::open", "[faults]") { inject_one<Opening>("Device::open"); }
TEST_CASE("whatever fails between opening and closing a device", "[faults]") {
  Injections how;
  how.seconds = 10;
  inject_one<WholeLife>("open, work, close", how);
}
TEST_CASE("whatever fails on an adopted device", "[faults]") { inject_one<Adopting>("adopt"); }
TEST_CASE("whatever fails in buffers", "[faults]") { inject_variants<Buffers>("buffers"); }
TEST_CASE("whatever fails in kernels of the user's own", "[faults]") { inject_one<UserKernels>("kernels"); }
TEST_CASE("whatever fails in elementwise batches", "[faults]") { inject_variants<Elementwise>("elementwise"); }
TEST_CASE("whatever fails in reductions", "[faults]") { inject_variants<Reductions>("reductions"); }
TEST_CASE("whatever fails in products", "[faults]") { inject_variants<Products>("products"); }
TEST_CASE("whatever fails in a batch that goes on", "[faults]") { inject_variants<Incremental>("incremental"); }
TEST_CASE("whatever fails in a run of several parts, a store is applied once", "[faults]") {
  inject_variants<SplitStores>("split stores");
}
TEST_CASE("whatever fails in slices of buffers", "[faults]") { inject_variants<Slices>("slices"); }
TEST_CASE("whatever fails in compiling", "[faults]") { inject_variants<Compiling>("compile"); }
TEST_CASE("whatever fails in a replay", "[faults]") { inject_variants<Replaying>("replay"); }
TEST_CASE("whatever fails in rebind(), the program runs on what is bound", "[faults]") {
  inject_variants<Rebinding>("rebind");
}
TEST_CASE("whatever fails, a program keeps the values it reads from being overwritten", "[faults]") {
  inject_variants<AfterReset>("program after reset");
}
TEST_CASE("whatever fails in a MatmulCache", "[faults]") { inject_variants<CachedProducts>("MatmulCache"); }
TEST_CASE("whatever fails in weights", "[faults]") { inject_variants<Weights>("weights"); }
TEST_CASE("whatever fails in tuning", "[faults]") {
  DeviceOptions options = world_options();
  options.tuning.enabled = true;
  options.tuning.path =
      (std::filesystem::temp_directory_path() / ("brontes-faults-tuning-" + std::to_string(getpid()))).string();
  inject_one<Tuning>("tune_matmul", {}, options);
}
TEST_CASE("whatever fails in saving the pipeline cache", "[faults]") {
  DeviceOptions options = world_options();
  options.pipeline_cache.enabled = true;
  options.pipeline_cache.path =
      (std::filesystem::temp_directory_path() / ("brontes-faults-cache-" + std::to_string(getpid()))).string();
  inject_one<SavingCaches>("save_pipeline_cache", {}, options);
}
TEST_CASE("whatever fails while objects are destroyed with work in flight", "[faults]") {
  inject_variants<DestroyedInFlight>("destroyed in flight");
}
TEST_CASE("whatever fails in submits of two threads, none is lost", "[faults]") {
  Injections how;
  how.host = false;  // threads allocate for themselves
  inject_variants<TakingTurns>("taking turns", how);
}
TEST_CASE("whatever fails in one-shot calls", "[faults]") { inject_variants<OneShots>("one-shots"); }

}  // namespace brontes::test
