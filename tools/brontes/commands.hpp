// The subcommands of the brontes command. Each gets the arguments behind its name and returns the exit
// status.
#pragma once

#include "arguments.hpp"

#include <string>

namespace tool {

enum ExitStatus : int {
  success = 0,
  failure = 1,  // it did not work; the reason is on stderr
  misuse = 2,   // wrong arguments
};

/// Says on stderr what is wrong with the arguments and where to find help. Returns `misuse`.
int report_misuse(const std::string& command, const std::string& problem);

int bench(const Arguments& arguments);
int cache(const Arguments& arguments);
int check(const Arguments& arguments);
int demo(const Arguments& arguments);
int devices(const Arguments& arguments);
int explain(const Arguments& arguments);
int info(const Arguments& arguments);
int kernels(const Arguments& arguments);
int plan(const Arguments& arguments);
int profile(const Arguments& arguments);
int run(const Arguments& arguments);
int trace(const Arguments& arguments);
int tune(const Arguments& arguments);
int version(const Arguments& arguments);

extern const char* const bench_help;
extern const char* const cache_help;
extern const char* const check_help;
extern const char* const demo_help;
extern const char* const devices_help;
extern const char* const explain_help;
extern const char* const info_help;
extern const char* const kernels_help;
extern const char* const plan_help;
extern const char* const profile_help;
extern const char* const run_help;
extern const char* const trace_help;
extern const char* const tune_help;
extern const char* const version_help;

}  // namespace tool
