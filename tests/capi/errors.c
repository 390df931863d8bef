/* Mistakes are statuses, and never more than that. */
#include "check.h"

static const float four[] = {1, 2, -3, 4};

static void tensors_know_their_batch(void) {
  brontes_error error;
  brontes_batch *a = new_batch(), *b = new_batch();
  brontes_tensor x = brontes_upload(a, four, 4, NULL, 0);
  CHECK(x != BRONTES_NO_TENSOR);

  CHECK(brontes_relu(b, x) == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_FOREIGN_TENSOR, brontes_batch_error(b, &error));
  CHECK(strstr(error.message, "relu") != NULL);
  CHECK_STATUS(BRONTES_ERROR_FOREIGN_TENSOR, brontes_batch_execute(b, &error));
  CHECK_STATUS(BRONTES_ERROR_FOREIGN_TENSOR, brontes_batch_clear_error(b, &error));
  CHECK_STATUS(BRONTES_OK, brontes_batch_error(b, &error));
  CHECK(error.status == BRONTES_OK && error.message[0] == '\0');

  CHECK_OK(brontes_batch_reset(a, &error));
  CHECK(brontes_relu(a, x) == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_STALE_TENSOR, brontes_batch_clear_error(a, &error));
  brontes_tensor y = brontes_upload(a, four, 4, NULL, 0);
  CHECK(y != x);

  float out[4];
  CHECK_STATUS(BRONTES_ERROR_STALE_TENSOR, brontes_batch_read(a, x, out, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_TENSOR, brontes_batch_read(a, BRONTES_NO_TENSOR, out, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_TENSOR, brontes_batch_read(a, 1, out, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_TENSOR, brontes_batch_read(a, y + 1, out, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_FOREIGN_TENSOR, brontes_batch_read(b, y, out, 4, &error));
  CHECK(brontes_tensor_shape(a, x, NULL) == 0);
  CHECK(brontes_tensor_dtype(a, y + 1) == -1);
  CHECK(brontes_tensor_size(b, y) == 0);
  brontes_batch_destroy(a);
  brontes_batch_destroy(b);
}

static void the_first_error_sticks(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_tensor x = brontes_upload(batch, four, 4, NULL, 0), y = brontes_upload(batch, four, 3, NULL, 0);
  CHECK(brontes_add(batch, brontes_relu(batch, brontes_add(batch, x, y)), x) == BRONTES_NO_TENSOR);
  CHECK(brontes_cast(batch, x, 99) == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_batch_execute(batch, &error));
  CHECK(strstr(error.message, "add") != NULL && strstr(error.message, "[3]") != NULL);
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_batch_clear_error(batch, &error));

  /* One that this API finds itself, and then one of the engine: the first is reported. */
  CHECK(brontes_cast(batch, x, 99) == BRONTES_NO_TENSOR);
  CHECK(brontes_add(batch, x, y) == BRONTES_NO_TENSOR);
  brontes_program* program = NULL;
  brontes_submission* submission = NULL;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_compile(batch, &program, &error));
  CHECK(program == NULL);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_submit(batch, &submission, &error));
  CHECK(submission == NULL);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_clear_error(batch, &error));
  CHECK(strstr(error.message, "99") != NULL);

  /* What was recorded before and after is still there. */
  brontes_tensor z = brontes_relu(batch, x);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, z, 1, 2, 0, 4);
  brontes_batch_destroy(batch);
}

static void null_is_an_error(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_tensor x = brontes_upload(batch, four, 4, NULL, 0);
  float out[4];
  size_t count = 0;
  char* text = NULL;
  char** names = NULL;
  uint32_t groups[3];
  brontes_batch_stats stats = {0};
  stats.struct_size = sizeof stats;

  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_open(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_get_info(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_get_info(device, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_get_stats(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_get_memory(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_get_memory(device, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_predict_memory(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_predict_memory(batch, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_get_memory(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_list_create(NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_list_get_info(NULL, 0, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_get_pipeline_cache(NULL, NULL, NULL, NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_save_pipeline_cache(NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_get_tuning(NULL, NULL, NULL, NULL, NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_explain_matmul(NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_explain_matmul(device, BRONTES_SHAPE(1, 1), BRONTES_SHAPE(1, 1), NULL, NULL, &text, &error));
  CHECK(text == NULL);
  brontes_batch* none = batch;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_create(NULL, NULL, &none, &error));
  CHECK(none == NULL);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_create(device, NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_execute(NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_submit(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_compile(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_read(NULL, x, out, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_read_i32(NULL, x, NULL, 0, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_reset(NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_error(NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_clear_error(NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_get_stats(NULL, &stats, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_get_stats(batch, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_dump(NULL, 0, 0, &text, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_dump(batch, 0, 0, NULL, &error));
  CHECK(brontes_batch_num_operations(NULL) == 0 && brontes_batch_num_buffers(NULL) == 0);

  CHECK(brontes_upload(NULL, four, 4, NULL, 0) == BRONTES_NO_TENSOR);
  CHECK(brontes_relu(NULL, x) == BRONTES_NO_TENSOR);
  CHECK(brontes_concat(NULL, &x, 1, 0) == BRONTES_NO_TENSOR);
  CHECK(brontes_keep(NULL, x) == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_store(NULL, x, NULL));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_split(NULL, x, 2, 0, NULL));

  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_run(NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_write(NULL, x, four, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_submit(NULL, NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_dump(NULL, 0, &text, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_submission_wait(NULL, 0, &error));
  CHECK(brontes_submission_ready(NULL) == 1);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_buffer_create(NULL, BRONTES_SHAPE(1), 0, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_buffer_write(NULL, four, 4, 0, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_buffer_read(NULL, out, 4, 0, &error));
  CHECK(brontes_buffer_dtype(NULL) == -1 && brontes_weight_dtype(NULL) == -1);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_kernel_get_info(NULL, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_kernel_groups_for(NULL, 1, 1, 1, groups, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_matmul_cache_clear(NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_matmul_cache_names(NULL, &names, &count, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
               brontes_matmul_cache_matmul(NULL, "w", four, 4, out, 4, 1, NULL, &error));

  /* No place for the message is fine. */
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_execute(NULL, NULL));

  brontes_device_destroy(NULL);
  brontes_device_list_destroy(NULL);
  brontes_buffer_destroy(NULL);
  brontes_weight_destroy(NULL);
  brontes_kernel_destroy(NULL);
  brontes_batch_destroy(NULL);
  brontes_program_destroy(NULL);
  brontes_submission_destroy(NULL);
  brontes_matmul_cache_destroy(NULL);
  brontes_free(NULL);
  brontes_batch_destroy(batch);
}

static void null_data_is_an_error(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
#define CHECK_RECORDED(wanted, call)                                \
  do {                                                              \
    CHECK((call) == BRONTES_NO_TENSOR);                             \
    CHECK_STATUS(wanted, brontes_batch_clear_error(batch, &error)); \
  } while (0)
  CHECK_RECORDED(BRONTES_ERROR_NULL_DATA, brontes_upload(batch, NULL, 4, NULL, 0));
  CHECK_RECORDED(BRONTES_ERROR_NULL_DATA, brontes_upload(batch, four, 4, NULL, 2));
  brontes_tensor x = brontes_upload(batch, four, 4, BRONTES_SHAPE(2, 2));
  CHECK_RECORDED(BRONTES_ERROR_NULL_DATA, brontes_sum(batch, x, NULL, 1, 0));
  CHECK_RECORDED(BRONTES_ERROR_NULL_DATA, brontes_slice(batch, x, NULL, 1));
  CHECK_RECORDED(BRONTES_ERROR_NULL_DATA, brontes_concat(batch, NULL, 2, 0));
  CHECK_RECORDED(BRONTES_ERROR_NULL_DATA, brontes_reshape(batch, x, NULL, 2));
  CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_import_buffer(batch, NULL));
  CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_import_weight(batch, NULL));
  CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_call(batch, NULL, &x, 1, NULL, NULL, NULL, 0));
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_split(batch, x, 2, 0, NULL));
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_batch_clear_error(batch, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_store(batch, x, NULL));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_clear_error(batch, &error));
  brontes_kernel* kernel = NULL;
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_kernel_from_spirv(device, NULL, 5, NULL, &kernel, &error));
  brontes_matmul_cache* cache = NULL;
  CHECK_OK(brontes_matmul_cache_create(device, NULL, &cache, &error));
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA,
               brontes_matmul_cache_upload_weight(cache, NULL, four, 4, 2, 2, BRONTES_DTYPE_F32, NULL, 0, &error));
  CHECK(brontes_matmul_cache_contains(cache, NULL) == 0);
  brontes_matmul_cache_destroy(cache);
  brontes_batch_destroy(batch);
}

static void numbers_out_of_range_are_errors(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_tensor x = brontes_upload(batch, four, 4, BRONTES_SHAPE(2, 2));
  static const uint64_t many_dims[] = {1, 1, 1, 1, 1, 1, 1, 1, 4};
  static const int64_t many_axes[9] = {0};
  static const int32_t bad[] = {-1, -2147483647 - 1, 7, 256, 2147483647};
  for (size_t i = 0; i < COUNT(bad); ++i) {
    CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_cast(batch, x, bad[i]));
    brontes_matmul_options options = {0};
    options.struct_size = sizeof options;
    options.layout = bad[i];
    CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_matmul(batch, x, x, &options));
    options.layout = 0;
    options.kernel = bad[i];
    CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_matmul(batch, x, x, &options));
    char* text = NULL;
    CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_dump(batch, bad[i], 1, &text, &error));
    CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_dump(batch, 0, bad[i], &text, &error));
    brontes_buffer* buffer = NULL;
    CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT,
                 brontes_buffer_create(device, BRONTES_SHAPE(1), bad[i], &buffer, &error));
    CHECK(strcmp(brontes_dtype_name(bad[i]), "unknown") == 0);
    CHECK(brontes_dtype_row_bytes(bad[i], 32) == 0);
    brontes_device_options opening = {0};
    opening.struct_size = sizeof opening;
    opening.validation = bad[i];
    brontes_device* other = NULL;
    CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_open(&opening, &other, &error));
    CHECK(other == NULL);
  }
  /* alpha without has_alpha would be lost. */
  brontes_matmul_options lost = {0};
  lost.struct_size = sizeof lost;
  lost.alpha = 2;
  CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_matmul(batch, x, x, &lost));
  CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_reshape(batch, x, many_dims, 9));
  CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_sum(batch, x, many_axes, 9, 0));
  CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_slice(batch, x, BRONTES_RANGES({0, 1, 0})));
  CHECK_RECORDED(BRONTES_ERROR_INVALID_ARGUMENT, brontes_softmax(batch, x, 5));
  brontes_tensor parts[3];
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_split(batch, x, 3, 0, parts));
  CHECK(parts[0] == BRONTES_NO_TENSOR && parts[2] == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_batch_clear_error(batch, &error));
  CHECK(strcmp(brontes_status_name(BRONTES_ERROR_NOT_KEPT), "not_kept") == 0);
  CHECK(strcmp(brontes_status_name(24), "unknown") == 0);
  brontes_batch_destroy(batch);
}

static void a_handle_of_another_type_is_an_error(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_buffer* buffer = NULL;
  CHECK_OK(brontes_buffer_from(device, four, 4, NULL, 0, &buffer, &error));
  /* As a language without types would: every handle is a pointer. */
  void* const not_a_batch = buffer;
  void* const not_a_buffer = batch;
  float out[4];
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_execute(not_a_batch, &error));
  CHECK(strstr(error.message, "not a batch") != NULL);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_buffer_read(not_a_buffer, out, 4, 0, &error));
  CHECK(brontes_relu(not_a_batch, 1) == BRONTES_NO_TENSOR);
  brontes_batch_destroy(not_a_batch);
  CHECK_OK(brontes_buffer_read(buffer, out, 4, 0, &error));
  CHECK(out[3] == 4);
  brontes_buffer_destroy(buffer);
  brontes_batch_destroy(batch);
}

static void reads_say_what_is_wrong(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  float out[4] = {9, 9, 9, 9};
  int32_t ints[4];
  brontes_tensor x = brontes_upload(batch, four, 4, NULL, 0), y = brontes_relu(batch, x), z = brontes_square(batch, y);
  CHECK_STATUS(BRONTES_ERROR_NOT_EXECUTED, brontes_batch_read(batch, z, out, 4, &error));
  CHECK_OK(brontes_batch_execute(batch, &error));
  CHECK_STATUS(BRONTES_ERROR_NOT_KEPT, brontes_batch_read(batch, y, out, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_batch_read(batch, z, out, 3, &error));
  CHECK_STATUS(BRONTES_ERROR_TYPE_MISMATCH, brontes_batch_read_i32(batch, z, ints, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_NULL_DATA, brontes_batch_read(batch, z, NULL, 4, &error));
  CHECK(out[0] == 9 && out[3] == 9);
  EXPECT(batch, z, 1, 4, 0, 16);
  brontes_batch_destroy(batch);
}

static void long_messages_are_cut_off(void) {
  brontes_error error;
  char name[4000];
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = '\0';
  brontes_matmul_cache* cache = NULL;
  CHECK_OK(brontes_matmul_cache_create(device, NULL, &cache, &error));
  memset(&error, 0x55, sizeof error);
  CHECK_STATUS(BRONTES_ERROR_NOT_FOUND, brontes_matmul_cache_evict(cache, name, &error));
  CHECK(strlen(error.message) == BRONTES_MESSAGE_SIZE - 1);
  /* Characters of two bytes, of which one does not fit in one of two alignments: it is left out as a whole. */
  size_t lengths = 0;
  for (size_t start = 0; start < 2; ++start) {
    name[0] = '-';
    for (size_t i = start; i + 2 < sizeof name; i += 2) memcpy(name + i, "\xc3\xa4", 2);
    name[sizeof name - 4 + start] = '\0';
    CHECK_STATUS(BRONTES_ERROR_NOT_FOUND, brontes_matmul_cache_evict(cache, name, &error));
    const size_t length = strlen(error.message);
    lengths += length;
    CHECK((unsigned char)error.message[length - 1] == 0xa4);
  }
  CHECK(lengths == 2 * BRONTES_MESSAGE_SIZE - 3);
  brontes_matmul_cache_destroy(cache);
}

void errors_tests(void) {
  run("a tensor of another batch, of before a reset, or of nowhere is an error", tensors_know_their_batch);
  run("the first recording error sticks", the_first_error_sticks);
  run("null handles are errors", null_is_an_error);
  run("null data is an error", null_data_is_an_error);
  run("numbers out of range are errors", numbers_out_of_range_are_errors);
  run("a handle of another type is an error", a_handle_of_another_type_is_an_error);
  run("reads say what is wrong and leave the output alone", reads_say_what_is_wrong);
  run("a message that is too long is cut off before a character", long_messages_are_cut_off);
}
