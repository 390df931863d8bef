/* What the C tests are written with: a test is a function, a failed check is a line, and the program's status says
   whether there was one. */
#ifndef BRONTES_TESTS_CAPI_CHECK_H
#define BRONTES_TESTS_CAPI_CHECK_H

#include <brontes/brontes.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int failures;
extern int checks;

#define CHECK(condition)                                                      \
  do {                                                                        \
    ++checks;                                                                 \
    if (!(condition)) {                                                       \
      ++failures;                                                             \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

/* A status, and with it the message. */
#define CHECK_STATUS(wanted, call)                                                                           \
  do {                                                                                                       \
    const brontes_status got_ = (call);                                                                      \
    ++checks;                                                                                                \
    if (got_ != (wanted)) {                                                                                  \
      ++failures;                                                                                            \
      fprintf(stderr, "%s:%d: %s: %s instead of %s\n", __FILE__, __LINE__, #call, brontes_status_name(got_), \
              brontes_status_name(wanted));                                                                  \
    }                                                                                                        \
  } while (0)

#define CHECK_OK(call)                                                              \
  do {                                                                              \
    ++checks;                                                                       \
    if ((call) != BRONTES_OK) {                                                     \
      ++failures;                                                                   \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, error.message); \
    }                                                                               \
  } while (0)

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The device that all tests share. */
extern brontes_device* device;

brontes_batch* new_batch(void);
/* Whether a readable value has these elements; NaN is equal to NaN. */
int has_f32(brontes_batch* batch, brontes_tensor x, const float* expected, size_t count, float tolerance);
int has_i32(brontes_batch* batch, brontes_tensor x, const int32_t* expected, size_t count);

#define EXPECT(batch, x, ...)                                     \
  do {                                                            \
    const float expected_[] = {__VA_ARGS__};                      \
    CHECK(has_f32(batch, x, expected_, COUNT(expected_), 1e-5f)); \
  } while (0)
#define EXPECT_I32(batch, x, ...)                          \
  do {                                                     \
    const int32_t expected_[] = {__VA_ARGS__};             \
    CHECK(has_i32(batch, x, expected_, COUNT(expected_))); \
  } while (0)

/* The tests, by file. */
void errors_tests(void);
void guide_tests(void);
void ops_tests(void);
void preparing_tests(void);
void resources_tests(void);
void running_tests(void);
void sharing_tests(void);
void structs_tests(void);
void vulkan_tests(void);

/* Runs a test and says its name. */
void run(const char* name, void (*test)(void));

#endif
