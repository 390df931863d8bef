/* The C API, from C. Runs on the device that BRONTES_DEVICE names, or the best one; any validation message fails. */
#include "check.h"

int failures = 0;
int checks = 0;
brontes_device* device = NULL;

static int messages = 0;

static void on_message(void* user_data, brontes_severity severity, const char* text) {
  if (severity == BRONTES_SEVERITY_INFO) return;
  ++*(int*)user_data;
  fprintf(stderr, "message: %s\n", text);
}

brontes_batch* new_batch(void) {
  brontes_error error;
  brontes_batch* batch = NULL;
  CHECK_OK(brontes_batch_create(device, NULL, &batch, &error));
  return batch;
}

int has_f32(brontes_batch* batch, brontes_tensor x, const float* expected, size_t count, float tolerance) {
  brontes_error error;
  float* const out = malloc(count * sizeof(float) + 1);
  int same = out != NULL && brontes_batch_read(batch, x, out, count, &error) == BRONTES_OK;
  if (out != NULL && !same) fprintf(stderr, "%s\n", error.message);
  for (size_t i = 0; same && i < count; ++i) {
    const int both_nan = isnan(out[i]) && isnan(expected[i]);
    if (both_nan || out[i] == expected[i]) continue;
    if (!(fabsf(out[i] - expected[i]) <= tolerance * fmaxf(1.0f, fabsf(expected[i])))) {
      fprintf(stderr, "element %zu is %g instead of %g\n", i, (double)out[i], (double)expected[i]);
      same = 0;
    }
  }
  free(out);
  return same;
}

int has_i32(brontes_batch* batch, brontes_tensor x, const int32_t* expected, size_t count) {
  brontes_error error;
  int32_t* const out = malloc(count * sizeof(int32_t) + 1);
  int same = out != NULL && brontes_batch_read_i32(batch, x, out, count, &error) == BRONTES_OK;
  if (out != NULL && !same) fprintf(stderr, "%s\n", error.message);
  for (size_t i = 0; same && i < count; ++i) {
    if (out[i] == expected[i]) continue;
    fprintf(stderr, "element %zu is %d instead of %d\n", i, (int)out[i], (int)expected[i]);
    same = 0;
  }
  free(out);
  return same;
}

void run(const char* name, void (*test)(void)) {
  const int before = failures;
  test();
  printf("%s: %s\n", failures == before ? "ok" : "FAILED", name);
}

int main(void) {
  brontes_error error;
  brontes_device_options options = {0};
  options.struct_size = sizeof options;
  options.on_message = on_message;
  options.user_data = &messages;
  if (brontes_device_open(&options, &device, &error) != BRONTES_OK) {
    fprintf(stderr, "%s: %s\n", brontes_status_name(error.status), error.message);
    return 1;
  }
  brontes_device_info info = {0};
  info.struct_size = sizeof info;
  CHECK_OK(brontes_device_get_info(device, &info, &error));
  printf("brontes %s on %s\n", brontes_version(), info.name);

  errors_tests();
  ops_tests();
  resources_tests();
  running_tests();
  preparing_tests();
  sharing_tests();
  structs_tests();
  vulkan_tests();
  guide_tests();

  brontes_device_destroy(device);
  CHECK(messages == 0);
  printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
