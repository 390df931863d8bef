#include "fixture.hpp"

#include <catch2/catch_session.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  const int result = Catch::Session().run(argc, argv);
  // Closing the device is checked too: it is where leaked objects are reported.
  brontes::test::close_shared_device();
  const auto messages = brontes::test::take_messages();
  for (const std::string& message : messages)
    std::fprintf(stderr, "validation, after the tests: %s\n", message.c_str());
  return result != 0 ? result : messages.empty() ? 0 : 1;
}
