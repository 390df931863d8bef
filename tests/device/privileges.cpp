// Set-uid and set-gid programs, for real: whoever starts one must not choose the code that it loads.
#include "fixture.hpp"

#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brontes::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t owner = 65534;
constexpr uid_t caller = 54321;

#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer = true;
#elif defined(__has_feature)
constexpr bool thread_sanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool thread_sanitizer = false;
#endif

// Copies of the program and of the spy where any user can reach them.
class Stage {
 public:
  Stage() {
    const char* program = std::getenv("BRONTES_PRIVILEGED_PROGRAM");
    const char* spy = std::getenv("BRONTES_SPY_LOADER");
    if (program == nullptr || spy == nullptr) SKIP("BRONTES_PRIVILEGED_PROGRAM is not set; run through meson test");
    if (geteuid() != 0) SKIP("needs root, to make a program set-uid");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) SKIP("no program may gain rights here");
    if (thread_sanitizer) SKIP("the kernel randomises addresses of set-uid programs, which TSan does not bear");
    std::string pattern = (fs::temp_directory_path() / "brontes-privileges-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    struct statvfs mounted {};
    REQUIRE(statvfs(folder_.c_str(), &mounted) == 0);
    if ((mounted.f_flag & (ST_NOSUID | ST_NOEXEC)) != 0) SKIP("the temporary directory is mounted nosuid or noexec");
    REQUIRE(chmod(folder_.c_str(), 0755) == 0);
    fs::copy_file(program, this->program());
    fs::copy_file(spy, this->spy());
    REQUIRE(chmod(this->spy().c_str(), 0755) == 0);
  }
  ~Stage() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  std::string program() const { return (folder_ / "privileged").string(); }
  std::string spy() const { return (folder_ / "spy.so").string(); }

  // Its output, run by `caller` while it has this mode.
  std::string run(mode_t mode) const {
    REQUIRE(chown(program().c_str(), owner, owner) == 0);
    REQUIRE(chmod(program().c_str(), mode) == 0);
    std::vector<std::string> variables = {"BRONTES_VULKAN_LIBRARY=" + spy(), "BRONTES_DEVICE=no such device",
                                          "BRONTES_VALIDATION=0", "HOME=" + folder_.string()};
    if (const char* drivers = std::getenv("VK_ICD_FILENAMES")) {
      variables.push_back(std::string("VK_ICD_FILENAMES=") + drivers);
    }
    std::vector<char*> envp;
    for (std::string& text : variables) envp.push_back(text.data());
    envp.push_back(nullptr);
    const std::string path = program();
    const std::string library = spy();

    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      if (setgroups(0, nullptr) != 0 || setgid(caller) != 0 || setuid(caller) != 0) _exit(126);
      execle(path.c_str(), path.c_str(), library.c_str(), static_cast<char*>(nullptr), envp.data());
      _exit(127);
    }
    close(ends[1]);
    std::string output;
    char chunk[4096];
    for (ssize_t count = 0; (count = ::read(ends[0], chunk, sizeof chunk)) > 0;) {
      output.append(chunk, static_cast<std::size_t>(count));
    }
    close(ends[0]);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    INFO(output);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 126) SKIP("root here cannot become another user");
    REQUIRE(WEXITSTATUS(status) == 0);
    return output;
  }

 private:
  fs::path folder_;
};

}  // namespace

TEST_CASE("a set-uid or set-gid program ignores every variable of ours", "[privileges]") {
  const Stage stage;
  const std::string usual = stage.run(0755);
  INFO("without rights: " << usual);
  CHECK(contains(usual, "secure=0\n"));
  CHECK(contains(usual, "loaded=1\n"));
  CHECK(contains(usual, "BRONTES_VULKAN_LIBRARY=" + stage.spy() + "\n"));
  CHECK(contains(usual, "BRONTES_DEVICE=no such device\n"));
  CHECK(contains(usual, "BRONTES_VALIDATION=0\n"));
  // The driver may lie where only root can read it.
  if (!contains(usual, "open=no_driver")) CHECK(contains(usual.substr(usual.find("open=")), "no such device"));
  for (mode_t mode : {04755u, 02755u}) {
    const std::string privileged = stage.run(mode);
    INFO("mode " << std::oct << mode << ": " << privileged);
    CHECK(contains(privileged, "secure=1\n"));
    CHECK(contains(privileged, "loaded=0\n"));
    CHECK(contains(privileged, "BRONTES_VULKAN_LIBRARY=(unset)\n"));
    CHECK(contains(privileged, "BRONTES_DEVICE=(unset)\n"));
    CHECK(contains(privileged, "BRONTES_VALIDATION=(unset)\n"));
    CHECK_FALSE(contains(privileged.substr(privileged.find("open=")), "no such device"));
  }
}

}  // namespace brontes::test
