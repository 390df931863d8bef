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

struct kept {
  uint8_t bytes[1 << 16];
  size_t size;
  int loads, stores;
};

static size_t load_kept(void* data, uint8_t* bytes, size_t size) {
  struct kept* const kept = data;
  if (bytes != NULL && size == kept->size) {
    memcpy(bytes, kept->bytes, size);
    ++kept->loads;
  }
  return kept->size;
}

static int32_t store_kept(void* data, const uint8_t* bytes, size_t size) {
  struct kept* const kept = data;
  ++kept->stores;
  if (size > sizeof kept->bytes) return 0;
  memcpy(kept->bytes, bytes, size);
  kept->size = size;
  return 1;
}

static void cache_by_callbacks(void) {
  brontes_error error;
  struct kept* const kept = calloc(1, sizeof *kept);
  CHECK(kept != NULL);
  if (kept == NULL) return;
  brontes_device_options options = {0};
  options.struct_size = sizeof options;
  options.load_pipeline_cache = load_kept;
  options.store_pipeline_cache = store_kept;
  options.pipeline_cache_data = kept;
  brontes_pipeline_cache_state state = -1;
  for (int turn = 0; turn < 2; ++turn) {
    brontes_device* other = NULL;
    CHECK_OK(brontes_device_open(&options, &other, &error));
    CHECK_OK(brontes_device_get_pipeline_cache(other, &state, NULL, NULL, NULL, &error));
    CHECK(state == (turn == 0 ? BRONTES_PIPELINE_CACHE_COLD : BRONTES_PIPELINE_CACHE_WARM));
    CHECK_OK(brontes_device_save_pipeline_cache(other, &error));
    brontes_device_destroy(other);
    CHECK(kept->loads == turn && kept->stores == turn + 1 && kept->size > 0);
  }
  free(kept);
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
  run("the pipeline cache goes through callbacks", cache_by_callbacks);
  run("products are tuned", tuning);
  run("the headers and the library have one version", versions);
}
