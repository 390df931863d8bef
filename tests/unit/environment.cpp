// SPDX-License-Identifier: MIT
#include "util/environment.hpp"

#include "keyed_file.hpp"

using namespace brontes;
using namespace brontes::test;

TEST_CASE("a variable is read as it is at the moment", "[environment]") {
  if (util::secure_execution()) SKIP("the tests run set-uid");
  constexpr const char* name = "BRONTES_SOME_VARIABLE";
  CHECK(util::environment(name) == nullptr);
  ScopedVariable set(name, "value");
  CHECK(std::string(util::environment(name)) == "value");
  ScopedVariable empty(name, "");
  CHECK(std::string(util::environment(name)).empty());
}

TEST_CASE("a process with the rights of two users or groups reads no variable", "[environment]") {
  ScopedVariable set("BRONTES_SOME_VARIABLE", "value");
  for (auto change : {&::seteuid, &::setegid}) {
    const int code = in_child([&] {
      if (::geteuid() != 0 || change(65534) != 0) return cannot_drop_root;
      return util::secure_execution() && util::environment("BRONTES_SOME_VARIABLE") == nullptr ? 0 : 1;
    });
    if (code == cannot_drop_root) SKIP("needs root");
    CHECK(code == 0);
  }
}
