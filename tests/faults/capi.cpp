// The C API, whose handles, tables and strings are host allocations of its own.
#include "injector.hpp"

#include "capi/handles.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <memory>

namespace brontes::test {
namespace {

template <class Handle, void (*destroy)(Handle*)>
struct Owned {
  Handle* handle = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { destroy(handle); }
};

void free_text(char* text) { brontes_free(text); }
void free_names(char** names) { brontes_free(names); }

/// Short enough to lie in the string itself.
Error failed(brontes_status status) { return Error(static_cast<Errc>(status), "C API"); }

class FromC final : public Workload {
 public:
  FromC() : device_(Device::open(world_options()).value()) {}
  const Device* device() const override { return &device_.device; }

  Error run() override {
    const brontes_status status = steps();
    if (status == BRONTES_OK) return {};
    if (error_.status != status) wrong("the error that was written is not the one that was returned");
    return failed(status);
  }

 private:
  brontes_status steps() {
    Owned<brontes_buffer, brontes_buffer_destroy> buffer;
    Owned<brontes_weight, brontes_weight_destroy> weight;
    Owned<brontes_batch, brontes_batch_destroy> batch;
    Owned<brontes_program, brontes_program_destroy> program;
    Owned<brontes_submission, brontes_submission_destroy> submission;
    Owned<brontes_matmul_cache, brontes_matmul_cache_destroy> cache;
    Owned<char, free_text> text;
    Owned<char*, free_names> names;
    brontes_status status = BRONTES_OK;
    const auto fails = [&status](brontes_status now) { return (status = now) != BRONTES_OK; };

    const std::array<std::uint64_t, 2> dims{2, 3};
    if (fails(brontes_buffer_from(&device_, data_.data(), 6, dims.data(), 2, &buffer.handle, &error_))) return status;
    if (fails(brontes_weight_from(&device_, data_.data(), 6, 2, 3, BRONTES_DTYPE_F16, &weight.handle, &error_))) {
      return status;
    }
    if (fails(brontes_batch_create(&device_, nullptr, &batch.handle, &error_))) return status;
    brontes_batch* const b = batch.handle;
    const brontes_tensor x = brontes_upload(b, data_.data(), 6, dims.data(), 2);
    std::array<brontes_tensor, 3> parts{};
    brontes_split(b, brontes_relu(b, x), 3, 1, parts.data());
    const brontes_tensor joined = brontes_concat(b, parts.data(), 3, 1);
    const brontes_tensor sum = brontes_add(b, joined, brontes_import_buffer(b, buffer.handle));
    const brontes_tensor y = brontes_linear(b, sum, brontes_import_weight(b, weight.handle));
    if (fails(brontes_batch_dump(b, BRONTES_DUMP_TEXT, BRONTES_DUMP_RECORDED, &text.handle, &error_))) return status;
    if (fails(brontes_batch_compile(b, &program.handle, &error_))) return status;
    if (fails(brontes_batch_execute(b, &error_))) return status;
    if (fails(brontes_batch_read(b, y, out_.data(), 4, &error_))) return status;
    if (out_[0] != 28.0f || out_[3] != 154.0f) wrong("a product");

    // A new table: the program has the old one.
    if (fails(brontes_batch_reset(b, &error_))) return status;
    if (brontes_upload(b, data_.data(), 6, dims.data(), 2) == BRONTES_NO_TENSOR &&
        fails(brontes_batch_error(b, &error_))) {
      return status;
    }
    if (fails(brontes_program_write(program.handle, x, data_.data() + 6, 6, &error_))) return status;
    if (fails(brontes_program_submit(program.handle, nullptr, &submission.handle, &error_))) return status;
    if (fails(brontes_submission_wait(submission.handle, BRONTES_FOREVER, &error_))) return status;
    if (fails(brontes_program_read(program.handle, y, out_.data(), 4, &error_))) return status;
    if (out_[0] != 14.0f || out_[3] != 77.0f) wrong("a product of other data");

    if (fails(brontes_matmul_cache_create(&device_, nullptr, &cache.handle, &error_))) return status;
    if (fails(brontes_matmul_cache_upload_weight(cache.handle, "w", data_.data(), 6, 2, 3, BRONTES_DTYPE_F32, nullptr,
                                                 0, &error_))) {
      return status;
    }
    std::size_t count = 0;
    if (fails(brontes_matmul_cache_names(cache.handle, &names.handle, &count, &error_))) return status;
    if (fails(brontes_matmul_cache_matmul(cache.handle, "w", data_.data(), 3, out_.data(), 2, 1, nullptr, &error_))) {
      return status;
    }
    if (out_[0] != 14.0f || out_[1] != 32.0f) wrong("a product of the cache");
    return status;
  }

  brontes_device device_;
  std::array<float, 12> data_{1, 2, 3, 4, 5, 6};
  std::array<float, 4> out_{};
  brontes_error error_{};
};

}  // namespace

TEST_CASE("whatever fails in calls from C", "[faults][capi]") {
  const Result<Device> device = Device::open(world_options());
  const Errc code = device.error().code;
  if (code == Errc::no_device || code == Errc::no_driver || code == Errc::no_loader) SKIP(device.error().message);
  inject("C API", {.make = [] { return std::make_unique<FromC>(); }});
}

}  // namespace brontes::test
