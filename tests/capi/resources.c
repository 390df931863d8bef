/* Devices, buffers, weights, kernels and the matmul cache. */
#include "check.h"

#include "axpy.spv.h"
#include "split.spv.h"

static const float six[] = {1, 2, 3, 4, 5, 6};

static void devices(void) {
  brontes_error error;
  brontes_device_list* list = NULL;
  CHECK_OK(brontes_device_list_create(&list, &error));
  CHECK(brontes_device_list_count(list) >= 1);
  brontes_device_info mine = {0}, listed = {0};
  mine.struct_size = listed.struct_size = sizeof mine;
  CHECK_OK(brontes_device_get_info(device, &mine, &error));
  CHECK_OK(brontes_device_list_get_info(list, mine.index, &listed, &error));
  CHECK(strcmp(mine.name, listed.name) == 0 && strcmp(mine.driver, listed.driver) == 0);
  CHECK(memcmp(mine.uuid, listed.uuid, sizeof mine.uuid) == 0);
  CHECK(mine.suitable && mine.unsuitable_because[0] == '\0');
  CHECK(mine.max_storage_range > 0 && mine.max_group_count[2] > 0 && mine.access != BRONTES_ACCESS_AUTOMATIC);
  CHECK(strcmp(brontes_device_type_name(mine.type), "CPU driver") == 0);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_device_list_get_info(list, brontes_device_list_count(list), &listed, &error));
  brontes_device_list_destroy(list);

  brontes_device_stats stats = {0};
  stats.struct_size = sizeof stats;
  CHECK_OK(brontes_device_get_stats(device, &stats, &error));
  CHECK(stats.submits > 0 && stats.pipelines_created > 0);

  brontes_device_memory memory = {0};
  memory.struct_size = sizeof memory;
  CHECK_OK(brontes_device_get_memory(device, &memory, &error));
  CHECK(memory.used_bytes >= stats.live_bytes && memory.block_bytes >= memory.used_bytes && memory.cap_bytes == 0);

  brontes_device_options small = {0};
  small.struct_size = sizeof small;
  small.memory_cap = 4096;
  brontes_device* capped = NULL;
  brontes_buffer* large = NULL;
  CHECK_OK(brontes_device_open(&small, &capped, &error));
  CHECK_STATUS(BRONTES_ERROR_OUT_OF_MEMORY,
               brontes_buffer_create(capped, BRONTES_SHAPE(4096), BRONTES_DTYPE_F32, &large, &error));
  brontes_device_destroy(capped);

  brontes_pipeline_cache_state state = -1;
  uint64_t bytes = 0;
  char *path = NULL, *note = NULL;
  CHECK_OK(brontes_device_get_pipeline_cache(device, &state, &bytes, &path, &note, &error));
  CHECK(state == BRONTES_PIPELINE_CACHE_COLD || state == BRONTES_PIPELINE_CACHE_WARM);
  CHECK(path != NULL && strlen(path) > 0 && note != NULL);
  brontes_free(path);
  brontes_free(note);
  CHECK_OK(brontes_device_get_pipeline_cache(device, NULL, NULL, NULL, NULL, &error));
  CHECK_OK(brontes_device_save_pipeline_cache(device, &error));
  brontes_tuning_state tuning = -1;
  uint64_t shapes = 1, changed = 1;
  CHECK_OK(brontes_device_get_tuning(device, &tuning, &shapes, &changed, NULL, NULL, &error));
  CHECK(strcmp(brontes_tuning_state_name(tuning), "unknown") != 0);
}

static int severe = 0;
static void count_messages(void* user_data, brontes_severity severity, const char* text) {
  (void)text;
  if (severity != BRONTES_SEVERITY_INFO) ++*(int*)user_data;
}

static void options_are_heeded(void) {
  brontes_error error;
  brontes_device* other = NULL;
  brontes_device_options options = {0};
  options.struct_size = sizeof options;
  options.no_cpu = 1;
  CHECK_STATUS(BRONTES_ERROR_NO_DEVICE, brontes_device_open(&options, &other, &error));
  CHECK(other == NULL && strlen(error.message) > 0);
  options.no_cpu = 0;
  options.select = "no such device";
  CHECK_STATUS(BRONTES_ERROR_NO_DEVICE, brontes_device_open(&options, &other, &error));
  options.select = NULL;

  brontes_simulated_limits limits = {0};
  limits.struct_size = sizeof limits;
  limits.max_storage_range = 1 << 16;
  limits.staged_memory = 1;
  options.simulate = &limits;
  options.no_pipeline_cache = 1;
  options.access = BRONTES_ACCESS_STORAGE;
  options.on_message = count_messages;
  options.user_data = &severe;
  CHECK_OK(brontes_device_open(&options, &other, &error));
  brontes_device_info info = {0};
  info.struct_size = sizeof info;
  CHECK_OK(brontes_device_get_info(other, &info, &error));
  CHECK(info.max_storage_range == 1 << 16 && !info.mapped_memory && info.access == BRONTES_ACCESS_STORAGE);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_save_pipeline_cache(other, &error));
  brontes_buffer* large = NULL;
  CHECK_STATUS(BRONTES_ERROR_LIMIT_EXCEEDED,
               brontes_buffer_create(other, BRONTES_SHAPE(1 << 20), BRONTES_DTYPE_F32, &large, &error));
  CHECK(large == NULL);

  /* Of another device. */
  brontes_buffer* foreign = NULL;
  CHECK_OK(brontes_buffer_from(other, six, 6, NULL, 0, &foreign, &error));
  brontes_batch* batch = new_batch();
  CHECK(brontes_import_buffer(batch, foreign) == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_error(batch, &error));
  brontes_batch_destroy(batch);
  brontes_device_destroy(other);
  /* The buffer keeps what it needs. */
  float out[6];
  CHECK_OK(brontes_buffer_read(foreign, out, 6, 0, &error));
  CHECK(memcmp(out, six, sizeof six) == 0);
  brontes_buffer_destroy(foreign);
  CHECK(severe == 0);
}

static void buffers(void) {
  brontes_error error;
  brontes_buffer *weights = NULL, *zeros = NULL, *ints = NULL, *halves = NULL, *bits = NULL;
  CHECK_OK(brontes_buffer_from(device, six, 6, BRONTES_SHAPE(2, 3), &weights, &error));
  CHECK_OK(brontes_buffer_create(device, BRONTES_SHAPE(2, 3), BRONTES_DTYPE_F32, &zeros, &error));
  CHECK_OK(brontes_buffer_from_i32(device, (const int32_t[]){7, 8}, 2, NULL, 0, &ints, &error));
  uint64_t dims[BRONTES_MAX_RANK] = {0};
  CHECK(brontes_buffer_shape(weights, dims) == 2 && dims[0] == 2 && dims[1] == 3);
  CHECK(brontes_buffer_size(weights) == 6 && brontes_buffer_bytes(weights) == 24);
  CHECK(brontes_buffer_dtype(ints) == BRONTES_DTYPE_I32);

  brontes_batch* batch = new_batch();
  brontes_tensor w = brontes_import_buffer(batch, weights);
  CHECK_STATUS(BRONTES_OK, brontes_store(batch, brontes_scale(batch, w, 10), zeros));
  brontes_tensor last = brontes_import_buffer_slice(batch, weights, BRONTES_RANGES({-1, BRONTES_PAST_LAST, 1}));
  CHECK_STATUS(BRONTES_OK, brontes_store_slice(batch, brontes_fill(batch, -1, BRONTES_SHAPE(1)), zeros,
                                               BRONTES_RANGES({0, 1, 1}, {1, 3, 1})));
  brontes_tensor sum = brontes_sum(batch, last, NULL, 0, 0);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, sum, 15);
  float out[6];
  CHECK_OK(brontes_buffer_read(zeros, out, 6, 0, &error));
  CHECK(out[0] == 10 && out[1] == -1 && out[2] == -1 && out[5] == 60);

  CHECK_OK(brontes_buffer_write(weights, (const float[]){100}, 1, 5, &error));
  CHECK_OK(brontes_buffer_read(weights, out, 2, 4, &error));
  CHECK(out[0] == 5 && out[1] == 100);
  int32_t numbers[2];
  CHECK_OK(brontes_buffer_write_i32(ints, (const int32_t[]){-9}, 1, 0, &error));
  CHECK_OK(brontes_buffer_read_i32(ints, numbers, 2, 0, &error));
  CHECK(numbers[0] == -9 && numbers[1] == 8);
  CHECK_STATUS(BRONTES_ERROR_TYPE_MISMATCH, brontes_buffer_read(ints, out, 2, 0, &error));

  CHECK_OK(brontes_buffer_from_f16(device, six, 6, BRONTES_SHAPE(2, 3), &halves, &error));
  CHECK_OK(brontes_buffer_from_f16_bits(device, (const uint16_t[]){0x3c00, 0x0001}, 2, NULL, 0, &bits, &error));
  CHECK(brontes_buffer_dtype(halves) == BRONTES_DTYPE_F16 && brontes_buffer_bytes(halves) == 12);
  CHECK_OK(brontes_buffer_read(halves, out, 6, 0, &error));
  CHECK(memcmp(out, six, sizeof six) == 0);
  uint16_t half[2];
  CHECK_OK(brontes_buffer_write(bits, (const float[]){-2}, 1, 0, &error));
  CHECK_OK(brontes_buffer_read_f16_bits(bits, half, 2, 0, &error));
  CHECK(half[0] == 0xc000 && half[1] == 0x0001);
  CHECK_OK(brontes_buffer_write_f16_bits(bits, (const uint16_t[]){0x4200}, 1, 1, &error));
  CHECK_OK(brontes_buffer_read(bits, out, 2, 0, &error));
  CHECK(out[0] == -2 && out[1] == 3);
  CHECK_STATUS(BRONTES_ERROR_TYPE_MISMATCH, brontes_buffer_read_f16_bits(weights, half, 2, 0, &error));
  brontes_buffer_destroy(halves);
  brontes_buffer_destroy(bits);

  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_buffer_write(weights, six, 6, 1, &error));
  brontes_buffer* wrong = weights;
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_buffer_from(device, six, 6, BRONTES_SHAPE(4), &wrong, &error));
  CHECK(wrong == NULL);
  brontes_buffer_destroy(weights);
  brontes_buffer_destroy(zeros);
  brontes_buffer_destroy(ints);
  brontes_batch_destroy(batch);
}

static void weights(void) {
  brontes_error error;
  brontes_weight *f32 = NULL, *turned = NULL, *half = NULL, *stored = NULL;
  CHECK_OK(brontes_weight_from(device, six, 6, 2, 3, BRONTES_DTYPE_F32, &f32, &error));
  /* B[3, 2] = W^T */
  CHECK_OK(brontes_weight_from_transposed(device, (const float[]){1, 4, 2, 5, 3, 6}, 6, 2, 3, BRONTES_DTYPE_F32,
                                          &turned, &error));
  CHECK_OK(brontes_weight_from(device, six, 6, 2, 3, BRONTES_DTYPE_BF16, &half, &error));
  /* 1 2 3 4 5 6 are exact in bf16: the upper halves of their bits. */
  static const uint16_t words[] = {0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0};
  CHECK(brontes_dtype_row_bytes(BRONTES_DTYPE_BF16, 3) == 6);
  CHECK_OK(brontes_weight_from_stored(device, words, sizeof words, 2, 3, BRONTES_DTYPE_BF16, &stored, &error));
  CHECK(brontes_weight_rows(f32) == 2 && brontes_weight_columns(f32) == 3 && brontes_weight_parts(f32) == 1);
  CHECK(brontes_weight_dtype(half) == BRONTES_DTYPE_BF16 && brontes_weight_bytes(half) > 0);

  brontes_batch* batch = new_batch();
  brontes_tensor x = brontes_upload(batch, (const float[]){1, 1, 2}, 3, BRONTES_SHAPE(1, 3));
  brontes_tensor y[4];
  y[0] = brontes_linear(batch, x, brontes_import_weight(batch, f32));
  y[1] = brontes_linear(batch, x, brontes_import_weight(batch, turned));
  y[2] = brontes_linear(batch, x, brontes_import_weight(batch, half));
  y[3] = brontes_linear(batch, x, brontes_import_weight(batch, stored));
  /* The batch keeps the memory. */
  brontes_weight_destroy(f32);
  brontes_weight_destroy(turned);
  brontes_weight_destroy(half);
  brontes_weight_destroy(stored);
  CHECK_OK(brontes_batch_execute(batch, &error));
  for (int i = 0; i < 4; ++i) EXPECT(batch, y[i], 9, 21);
  brontes_batch_destroy(batch);

  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH,
               brontes_weight_from(device, six, 6, 2, 4, BRONTES_DTYPE_F32, &f32, &error));
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH,
               brontes_weight_from(device, six, 6, 2, 3, BRONTES_DTYPE_Q8_0, &f32, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_weight_from(device, six, 6, 2, 3, 42, &f32, &error));
  CHECK(f32 == NULL);
}

static void kernels(void) {
  brontes_error error;
  brontes_constant constants[] = {
      {0, BRONTES_CONSTANT_INTEGER, {.integer = 32}},
      {1, BRONTES_CONSTANT_FLOATING, {.floating = 0.5f}},
      {2, BRONTES_CONSTANT_BOOLEAN, {.boolean = 1}},
      {3, BRONTES_CONSTANT_INTEGER, {.integer = -2}},
  };
  brontes_kernel_options options = {0};
  options.struct_size = sizeof options;
  options.name = "axpy";
  options.constants = constants;
  options.constant_count = COUNT(constants);
  brontes_kernel* axpy = NULL;
  CHECK_OK(brontes_kernel_from_spirv(device, axpy_spv, COUNT(axpy_spv), &options, &axpy, &error));

  brontes_kernel_info info = {0};
  info.struct_size = sizeof info;
  CHECK_OK(brontes_kernel_get_info(axpy, &info, &error));
  CHECK(strcmp(info.name, "axpy") == 0 && strcmp(info.entry_point, "main") == 0);
  CHECK(info.binding_count == 3 && info.input_count == 2 && info.output_count == 1);
  CHECK(info.workgroup_size[0] == 32 && info.push_bytes == 8 && !info.uses_subgroups);
  brontes_kernel_binding binding = {0};
  binding.struct_size = sizeof binding;
  CHECK_OK(brontes_kernel_get_binding(axpy, 1, &binding, &error));
  CHECK(binding.binding == 2 && binding.access == BRONTES_KERNEL_WRITE && binding.name != NULL);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_kernel_get_binding(axpy, 3, &binding, &error));
  uint32_t groups[3] = {0};
  CHECK_OK(brontes_kernel_groups_for(axpy, 33, 1, 1, groups, &error));
  CHECK(groups[0] == 2 && groups[1] == 1 && groups[2] == 1);

  brontes_batch* batch = new_batch();
  const struct {
    float a;
    uint32_t n;
  } push = {2, 6};
  brontes_tensor x = brontes_upload(batch, six, 6, NULL, 0), y = brontes_fill(batch, 1, BRONTES_SHAPE(6));
  const brontes_value_spec output = {(const uint64_t[]){6}, 1, BRONTES_DTYPE_F32};
  brontes_tensor z = brontes_call(batch, axpy, BRONTES_TENSORS(x, y), &output, groups, &push, sizeof push);
  brontes_tensor shown = brontes_neg(batch, z);
  brontes_kernel_destroy(axpy);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, shown, 1.5f, 3.5f, 5.5f, 7.5f, 9.5f, 11.5f);

  /* Two outputs. */
  brontes_kernel* split = NULL;
  CHECK_OK(brontes_kernel_from_spirv(device, split_spv, COUNT(split_spv), NULL, &split, &error));
  CHECK_OK(brontes_kernel_get_info(split, &info, &error));
  CHECK(info.output_count == 2);
  brontes_tensor out[2] = {1, 1};
  brontes_tensor half = brontes_scale(batch, x, .5f);
  const brontes_value_spec both[] = {output, output};
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_call_all(batch, split, &x, 0, both, 2, groups, NULL, 0, out));
  CHECK(out[0] == BRONTES_NO_TENSOR && out[1] == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_clear_error(batch, &error));
  CHECK_STATUS(BRONTES_OK,
               brontes_call_all(batch, split, &half, 1, both, 2, (const uint32_t[]){1, 1, 1}, NULL, 0, out));
  CHECK(out[0] != BRONTES_NO_TENSOR && out[1] != BRONTES_NO_TENSOR && out[0] != out[1]);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, out[0], 0, 1, 1, 2, 2, 3);
  EXPECT(batch, out[1], .5f, 0, .5f, 0, .5f, 0);
  brontes_kernel_destroy(split);
  brontes_batch_destroy(batch);

  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_kernel_from_spirv(device, (const uint32_t[]){1, 2, 3, 4, 5, 6}, 6, NULL, &axpy, &error));
  CHECK(axpy == NULL);
  constants[0].kind = 5;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_kernel_from_spirv(device, axpy_spv, COUNT(axpy_spv), &options, &axpy, &error));
  options.constants = NULL;
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA,
               brontes_kernel_from_spirv(device, axpy_spv, COUNT(axpy_spv), &options, &axpy, &error));
}

static void matmul_cache(void) {
  brontes_error error;
  brontes_matmul_cache* cache = NULL;
  brontes_matmul_cache_options options = {0};
  options.struct_size = sizeof options;
  options.max_programs = 2;
  CHECK_OK(brontes_matmul_cache_create(device, &options, &cache, &error));
  CHECK_OK(brontes_matmul_cache_upload_weight(cache, "fc2", six, 6, 2, 3, BRONTES_DTYPE_F32, (const float[]){-100, 1},
                                              2, &error));
  CHECK_OK(brontes_matmul_cache_upload_weight(cache, "fc1", six, 6, 3, 2, BRONTES_DTYPE_F32, NULL, 0, &error));
  CHECK_STATUS(BRONTES_ERROR_ALREADY_EXISTS,
               brontes_matmul_cache_upload_weight(cache, "fc1", six, 6, 3, 2, BRONTES_DTYPE_F32, NULL, 0, &error));
  CHECK(brontes_matmul_cache_weight_count(cache) == 2 && brontes_matmul_cache_weight_bytes(cache) > 0);

  char** names = NULL;
  size_t count = 0;
  CHECK_OK(brontes_matmul_cache_names(cache, &names, &count, &error));
  CHECK(count == 2 && strcmp(names[0], "fc1") == 0 && strcmp(names[1], "fc2") == 0 && names[2] == NULL);
  brontes_free(names);

  brontes_cached_weight_info info = {0};
  info.struct_size = sizeof info;
  CHECK_OK(brontes_matmul_cache_get_info(cache, "fc2", &info, &error));
  CHECK(info.rows == 2 && info.columns == 3 && info.bias && info.parts == 1 && info.dtype == BRONTES_DTYPE_F32);

  const float x[] = {1, 1, 2};
  float y[2] = {0};
  CHECK_OK(brontes_matmul_cache_matmul(cache, "fc2", x, 3, y, 2, 1, NULL, &error));
  CHECK(y[0] == -91 && y[1] == 22);
  brontes_matmul_epilogue epilogue = {0};
  epilogue.struct_size = sizeof epilogue;
  epilogue.activation = BRONTES_ACTIVATION_RELU;
  epilogue.has_alpha = 1;
  epilogue.alpha = 2;
  CHECK_OK(brontes_matmul_cache_matmul(cache, "fc2", x, 3, y, 2, 1, &epilogue, &error));
  CHECK(y[0] == 0 && y[1] == 43);
  epilogue.no_bias = 1;
  CHECK_OK(brontes_matmul_cache_matmul(cache, "fc2", x, 3, y, 2, 1, &epilogue, &error));
  CHECK(y[0] == 18 && y[1] == 42);
  CHECK(brontes_matmul_cache_program_count(cache) == 2 && brontes_matmul_cache_io_bytes(cache) > 0);
  epilogue.activation = 70;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_matmul_cache_matmul(cache, "fc2", x, 3, y, 2, 1, &epilogue, &error));
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_matmul_cache_matmul(cache, "fc2", x, 2, y, 2, 1, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_NOT_FOUND, brontes_matmul_cache_matmul(cache, "fc3", x, 3, y, 2, 1, NULL, &error));
  CHECK(strstr(error.message, "fc3") != NULL);

  brontes_batch_stats stats = {0};
  stats.struct_size = sizeof stats;
  CHECK_OK(brontes_matmul_cache_get_stats(cache, &stats, &error));
  CHECK(stats.submits == 3);

  /* The weight outlives its name. */
  brontes_weight* weight = NULL;
  CHECK_OK(brontes_matmul_cache_weight(cache, "fc2", &weight, &error));
  CHECK_OK(brontes_matmul_cache_evict(cache, "fc2", &error));
  CHECK_STATUS(BRONTES_ERROR_NOT_FOUND, brontes_matmul_cache_evict(cache, "fc2", &error));
  CHECK(!brontes_matmul_cache_contains(cache, "fc2") && brontes_matmul_cache_contains(cache, "fc1"));
  brontes_batch* batch = new_batch();
  brontes_tensor product =
      brontes_linear(batch, brontes_upload(batch, x, 3, BRONTES_SHAPE(1, 3)), brontes_import_weight(batch, weight));
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, product, 9, 21);
  brontes_batch_destroy(batch);
  brontes_weight_destroy(weight);

  /* Stored as bf16. */
  static const uint16_t words[] = {0x3f80, 0x4000, 0x4040};
  CHECK_OK(
      brontes_matmul_cache_upload_stored(cache, "s", words, sizeof words, 1, 3, BRONTES_DTYPE_BF16, NULL, 0, &error));
  CHECK_OK(brontes_matmul_cache_matmul(cache, "s", x, 3, y, 1, 1, NULL, &error));
  CHECK(y[0] == 9);
  CHECK_OK(brontes_matmul_cache_replace_stored(cache, "s", words, 4, 1, 2, BRONTES_DTYPE_BF16, NULL, 0, &error));
  CHECK_OK(brontes_matmul_cache_matmul(cache, "s", x, 2, y, 1, 1, NULL, &error));
  CHECK(y[0] == 3);
  CHECK_OK(brontes_matmul_cache_replace_weight(cache, "s", six, 3, 1, 3, BRONTES_DTYPE_F32, NULL, 0, &error));
  CHECK_OK(brontes_matmul_cache_matmul(cache, "s", x, 3, y, 1, 1, NULL, &error));
  CHECK(y[0] == 9);
  CHECK_OK(brontes_matmul_cache_trim(cache, &error));
  CHECK(brontes_matmul_cache_io_bytes(cache) == 0 && brontes_matmul_cache_program_count(cache) == 0);
  CHECK_OK(brontes_matmul_cache_clear(cache, &error));
  CHECK(brontes_matmul_cache_weight_count(cache) == 0);
  brontes_matmul_cache_destroy(cache);
}

void resources_tests(void) {
  run("devices are listed, described and counted", devices);
  run("the options of a device are heeded", options_are_heeded);
  run("buffers are read, written, imported and stored to", buffers);
  run("weights of every origin give the same product", weights);
  run("kernels get constants, push constants, inputs and outputs", kernels);
  run("the matmul cache keeps weights by name", matmul_cache);
}
