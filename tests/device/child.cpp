#include "child.hpp"

#include "fixture.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

namespace brontes::test {
namespace {

constexpr const char* marker = "--child";

// Opens a device the way the environment says; prints the error's code and message, or the name.
int open_job(const char* select) {
  DeviceOptions options;
  options.select = select;
  options.pipeline_cache.enabled = false;
  const Result<Device> device = Device::open(options);
  if (device) {
    std::printf("ok\n%s\n", device->info().name.c_str());
  } else {
    std::printf("%s\n%s\n", to_string(device.error().code), device.error().message.c_str());
  }
  return 0;
}

int list_job() {
  const Result<std::vector<DeviceInfo>> list = Device::list();
  std::printf("%s\n%s\n", to_string(list.error().code), list.error().message.c_str());
  return 0;
}

// Opens with a cache file, makes a pipeline, saves several times; prints the state found at open.
int save_cache_job(const char* path) {
  DeviceOptions options;
  options.validation = Toggle::off;
  options.pipeline_cache.path = path;
  Result<Device> device = Device::open(options);
  if (!device) return 2;
  Batch batch(*device);
  const Tensor y = batch.relu(batch.upload({-1.f, 1.f}));
  if (batch.execute()) return 3;
  const Result<std::vector<float>> values = batch.read(y);
  if (!values || *values != std::vector<float>{0.f, 1.f}) return 4;
  for (int i = 0; i < 25; ++i) {
    if (device->save_pipeline_cache()) return 5;
  }
  std::printf("%s\n", to_string(device->pipeline_cache().state));
  return 0;
}

// Opens with default cache options and prints what became of the file.
int default_cache_job() {
  DeviceOptions options;
  options.validation = Toggle::off;
  Result<Device> device = Device::open(options);
  if (!device) return 2;
  const PipelineCacheStatus status = device->pipeline_cache();
  std::printf("%s\n%s\n%s\n", to_string(status.state), status.path.c_str(), status.note.c_str());
  if (status.state != PipelineCacheState::off && device->save_pipeline_cache()) return 3;
  return 0;
}

struct Running {
  pid_t pid = -1;
  int output = -1;
};

Running start(const std::vector<std::string>& job, const Environment& environment) {
  // Everything that allocates happens before fork(): this process may have threads.
  std::vector<std::string> arguments = {"device-tests", marker};
  arguments.insert(arguments.end(), job.begin(), job.end());
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const auto& [name, value] : environment) {
      if (std::strncmp(*entry, name.c_str(), name.size()) == 0 && (*entry)[name.size()] == '=') replaced = true;
    }
    if (!replaced) variables.emplace_back(*entry);
  }
  std::vector<char*> argv;
  for (std::string& text : arguments) argv.push_back(text.data());
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (std::string& text : variables) envp.push_back(text.data());
  envp.push_back(nullptr);

  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    execve("/proc/self/exe", argv.data(), envp.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  return {pid, pipe_ends[0]};
}

ChildResult finish(const Running& child) {
  ChildResult result;
  char chunk[4096];
  ssize_t count = 0;
  while ((count = ::read(child.output, chunk, sizeof chunk)) > 0) {
    result.output.append(chunk, static_cast<std::size_t>(count));
  }
  close(child.output);
  int status = 0;
  REQUIRE(waitpid(child.pid, &status, 0) == child.pid);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& job, const Environment& environment) {
  return finish(start(job, environment));
}

std::vector<ChildResult> run_children(int count, const std::vector<std::string>& job, const Environment& environment) {
  std::vector<Running> children;
  for (int i = 0; i < count; ++i) children.push_back(start(job, environment));
  std::vector<ChildResult> results;
  for (const Running& child : children) results.push_back(finish(child));
  return results;
}

int child_main(int argc, char** argv) {
  if (argc < 3 || std::strcmp(argv[1], marker) != 0) return -1;
  const std::string job = argv[2];
  if (job == "open") return open_job(argc > 3 ? argv[3] : "");
  if (job == "list") return list_job();
  if (job == "save-cache" && argc == 4) return save_cache_job(argv[3]);
  if (job == "default-cache") return default_cache_job();
  std::fprintf(stderr, "no such job: %s\n", argv[2]);
  return 126;
}

}  // namespace brontes::test
