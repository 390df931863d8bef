#include <brontes/error.hpp>

#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <set>
#include <string>

using brontes::Errc;
using brontes::Error;
using brontes::Result;

TEST_CASE("a default Error is success and converts to false", "[error]") {
  const Error error;
  CHECK_FALSE(static_cast<bool>(error));
  CHECK(error.code == Errc::ok);
  CHECK(error.vk_result == 0);
  CHECK(error.message.empty());
}

TEST_CASE("an Error with a code converts to true and carries its reason", "[error]") {
  const Error error(Errc::device_lost, "execute: the driver reset the device", -4);
  CHECK(static_cast<bool>(error));
  CHECK(error.code == Errc::device_lost);
  CHECK(error.vk_result == -4);
  CHECK(error.message == "execute: the driver reset the device");
}

TEST_CASE("every error code has a name of its own", "[error]") {
  std::set<std::string> names;
  const int last = static_cast<int>(Errc::vulkan);
  for (int code = 0; code <= last; ++code) {
    const char* name = to_string(static_cast<Errc>(code));
    REQUIRE(name != nullptr);
    CHECK_FALSE(std::string(name).empty());
    names.insert(name);
  }
  CHECK(names.size() == static_cast<std::size_t>(last) + 1);
  CHECK(std::string(to_string(Errc::ok)) == "ok");
  CHECK(std::string(to_string(Errc::shape_mismatch)) == "shape_mismatch");
  CHECK(std::string(to_string(Errc::type_mismatch)) == "type_mismatch");
  CHECK(std::string(to_string(Errc::vulkan)) == "vulkan");
}

TEST_CASE("a code that is no enumerator still has a printable name", "[error]") {
  REQUIRE(to_string(static_cast<Errc>(250)) != nullptr);
}

TEST_CASE("a Result with a value converts to true and has no error", "[result]") {
  Result<int> result = 7;
  CHECK(static_cast<bool>(result));
  CHECK(result.has_value());
  CHECK(result.value() == 7);
  CHECK(*result == 7);
  CHECK(result.error().code == Errc::ok);
  CHECK(result.error().message.empty());
}

TEST_CASE("a Result with an error converts to false and keeps the error", "[result]") {
  const Result<int> result = Error(Errc::io, "no such file");
  CHECK_FALSE(static_cast<bool>(result));
  CHECK_FALSE(result.has_value());
  CHECK(result.error().code == Errc::io);
  CHECK(result.error().message == "no such file");
}

TEST_CASE("value() of a failed Result throws BadResult with the error in it", "[result]") {
  Result<std::string> result = Error(Errc::timeout, "it took too long", 2);
  try {
    (void)result.value();
    FAIL("value() returned");
  } catch (const brontes::BadResult& bad) {
    CHECK(bad.error().code == Errc::timeout);
    CHECK(bad.error().vk_result == 2);
    CHECK(std::string(bad.what()) == "it took too long");
  }
  CHECK_THROWS_AS(*result, brontes::BadResult);
  CHECK_THROWS_AS(result->size(), brontes::BadResult);
}

TEST_CASE("a move-only value can be taken out of a Result", "[result]") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = std::move(result).value();
  REQUIRE(taken);
  CHECK(*taken == 3);
}

TEST_CASE("a Result of a value that can be made from an Error holds the right one", "[result]") {
  Result<bool> yes = true;
  CHECK(yes.has_value());
  CHECK(yes.value());
  Result<bool> no = false;
  CHECK(no.has_value());
  CHECK_FALSE(no.value());
}
