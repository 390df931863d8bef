// What every device suite shares: one Device with validation on, and a check that no test case left a
// validation message behind.
#pragma once

#include <brontes/brontes.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>

#include <string>
#include <vector>

namespace brontes::test {

/// Warnings and errors that devices reported since the last call. Any thread.
std::vector<std::string> take_messages();

/// Validation on (off only where BRONTES_VALIDATION=0), messages recorded for take_messages(), no
/// pipeline-cache file and no tuning.
DeviceOptions checked_options();

/// A device for this test alone. Skips the test where there is no device, fails it on any other error.
Device open_device(const DeviceOptions& options = checked_options());

/// The device most tests run on, opened once. Skips the test where there is none.
const Device& shared_device();
/// Called by main() at the end, outside of static destruction.
void close_shared_device();

/// BRONTES_SOAK=1 asks for sweeps that take minutes.
bool soak();

/// For TEST_CASE_METHOD: fails the test case when validation had something to say about it.
class DeviceTest {
 public:
  DeviceTest() = default;
  DeviceTest(const DeviceTest&) = delete;
  DeviceTest& operator=(const DeviceTest&) = delete;
  ~DeviceTest() noexcept(false);
};

/// Executes what is recorded and reads one value; fails the test on any error.
std::vector<float> run(Batch& batch, Tensor x);

/// Reads a value of an executed batch; fails the test on any error.
std::vector<float> read(const Batch& batch, Tensor x);

/// A short chain that must work on any healthy device. For use after errors.
void check_device_works(const Device& device);

/// 0, 1, 2, ... as floats.
std::vector<float> counting(std::size_t count);

bool contains(const std::string& text, const std::string& part);

#define REQUIRE_OK(...)                                        \
  do {                                                         \
    const ::brontes::Error brontes_test_error = (__VA_ARGS__); \
    INFO(brontes_test_error.message);                          \
    REQUIRE(brontes_test_error.code == ::brontes::Errc::ok);   \
  } while (false)

}  // namespace brontes::test

namespace Catch {
template <>
struct StringMaker<brontes::Errc> {
  static std::string convert(brontes::Errc code) { return to_string(code); }
};
template <>
struct StringMaker<brontes::MatmulKernel> {
  static std::string convert(brontes::MatmulKernel kernel) { return to_string(kernel); }
};
template <>
struct StringMaker<brontes::PipelineCacheState> {
  static std::string convert(brontes::PipelineCacheState state) { return to_string(state); }
};
template <>
struct StringMaker<brontes::TuningState> {
  static std::string convert(brontes::TuningState state) { return to_string(state); }
};
template <>
struct StringMaker<brontes::Shape> {
  static std::string convert(const brontes::Shape& shape) { return to_string(shape); }
};
}  // namespace Catch
