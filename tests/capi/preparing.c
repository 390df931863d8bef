/* What is done ahead of the first run. */
#include "check.h"

static int32_t count_calls(void* user_data, size_t ready, size_t total) {
  ++*(int*)user_data;
  return ready <= total;
}

static int32_t stop(void* user_data, size_t ready, size_t total) {
  (void)user_data, (void)ready, (void)total;
  return 0;
}

static void pipelines(void) {
  brontes_error error;
  brontes_batch* const batch = new_batch();
  const float four[] = {1, 2, 3, 4};
  brontes_tensor x = brontes_upload(batch, four, 4, NULL, 0);
  x = brontes_elu(batch, brontes_softmax(batch, x, 0), 0.25f);
  int calls = 0;
  brontes_prepare_options options = {0};
  options.struct_size = sizeof options;
  options.on_progress = stop;
  brontes_prepared prepared = {0};
  prepared.struct_size = sizeof prepared;
  CHECK_OK(brontes_batch_prepare(batch, &options, &prepared, &error));
  CHECK(prepared.total > 0 && prepared.ready <= prepared.total);
  options.on_progress = count_calls;
  options.user_data = &calls;
  CHECK_OK(brontes_batch_prepare(batch, &options, &prepared, &error));
  CHECK(prepared.ready == prepared.total && calls > 0);
  CHECK_OK(brontes_batch_execute(batch, &error));
  brontes_batch_stats stats = {0};
  stats.struct_size = sizeof stats;
  CHECK_OK(brontes_batch_get_stats(batch, &stats, &error));
  CHECK(stats.pipelines_created == 0);
  brontes_batch_destroy(batch);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_prepare(NULL, NULL, NULL, &error));
}

static void cache_as_bytes(void) {
  brontes_error error;
  uint8_t* bytes = NULL;
  size_t count = 0;
  CHECK_OK(brontes_device_save_pipelines(device, &bytes, &count, &error));
  CHECK(bytes != NULL && count > 0);
  CHECK_OK(brontes_device_load_pipelines(device, bytes, count, &error));
  bytes[count / 2] ^= 1;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_load_pipelines(device, bytes, count, &error));
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_device_load_pipelines(device, NULL, 1, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_save_pipelines(device, NULL, &count, &error));
  brontes_free(bytes);
}

static int32_t at_most_one(void* user_data, size_t done, size_t total, double seconds) {
  (void)total, (void)seconds;
  ++*(int*)user_data;
  return done < 1;
}

static void tuning(void) {
  brontes_error error;
  int calls = 0;
  const brontes_matmul_shape shapes[] = {{1, 8, 8, BRONTES_LAYOUT_NK, 0}, {1, 4, 4, BRONTES_LAYOUT_KN, 0}};
  brontes_tune_options options = {0};
  options.struct_size = sizeof options;
  options.shapes = shapes;
  options.shape_count = 2;
  options.no_compare_access = 1;
  options.no_save = 1;
  options.on_progress = at_most_one;
  options.user_data = &calls;
  brontes_tune_report report = {0};
  report.struct_size = sizeof report;
  CHECK_OK(brontes_tune_matmul(device, &options, &report, &error));
  CHECK(calls >= 2 && report.measured == 1 && report.changed <= 1 && report.stopped == 1 && report.saved == 0);
  options.seconds = -1;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_tune_matmul(device, &options, &report, &error));
  options.seconds = 0;
  options.shapes = NULL;
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_tune_matmul(device, &options, &report, &error));
}

static void versions(void) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", BRONTES_VERSION_MAJOR, BRONTES_VERSION_MINOR, BRONTES_VERSION_PATCH);
  CHECK(strcmp(text, brontes_version()) == 0);
}

void preparing_tests(void) {
  run("pipelines are created ahead of the first run", pipelines);
  run("the pipeline cache is bytes", cache_as_bytes);
  run("products are tuned", tuning);
  run("the headers and the library have one version", versions);
}
