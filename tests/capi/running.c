/* Batches, programs and submissions. */
#include "check.h"

static const float four[] = {1, 2, -3, 4};
static const float halves[] = {.5f, .5f, .5f, .5f};

static brontes_tensor relu_scale_add(brontes_batch* batch, brontes_tensor* x) {
  *x = brontes_upload(batch, four, 4, NULL, 0);
  brontes_tensor b = brontes_upload(batch, halves, 4, NULL, 0);
  return brontes_add(batch, brontes_scale(batch, brontes_relu(batch, *x), 2), b);
}

static void one_submit(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_tensor x;
  brontes_tensor out = relu_scale_add(batch, &x);
  CHECK(brontes_batch_num_operations(batch) == 3 && brontes_batch_num_buffers(batch) == 5);
  char* text = NULL;
  CHECK_OK(brontes_batch_dump(batch, BRONTES_DUMP_TEXT, BRONTES_DUMP_PLANNED, &text, &error));
  CHECK(text != NULL && strstr(text, "relu+scale+add") != NULL);
  brontes_free(text);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, out, 2.5f, 4.5f, .5f, 8.5f);
  brontes_batch_stats stats = {0};
  stats.struct_size = sizeof stats;
  CHECK_OK(brontes_batch_get_stats(batch, &stats, &error));
  CHECK(stats.operations == 3 && stats.dispatches == 1 && stats.submits == 1 && stats.transfers_up == 1 &&
        stats.transfers_down == 1 && stats.fused_operations == 2 && stats.bytes_up == 32 && stats.bytes_down == 16);

  /* Executing goes on from there. */
  brontes_tensor more = brontes_neg(batch, out);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, more, -2.5f, -4.5f, -.5f, -8.5f);
  brontes_batch_destroy(batch);
}

static void batch_options(void) {
  brontes_error error;
  brontes_batch_options options = {0};
  options.struct_size = sizeof options;
  options.no_fuse = 1;
  options.keep_all = 1;
  brontes_batch* batch = NULL;
  CHECK_OK(brontes_batch_create(device, &options, &batch, &error));
  brontes_tensor x = brontes_upload(batch, four, 4, NULL, 0), y = brontes_relu(batch, x), z = brontes_square(batch, y);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, y, 1, 2, 0, 4);
  EXPECT(batch, z, 1, 4, 0, 16);
  brontes_batch_stats stats = {0};
  stats.struct_size = sizeof stats;
  CHECK_OK(brontes_batch_get_stats(batch, &stats, &error));
  CHECK(stats.dispatches == 2 && stats.fused_operations == 0);
  brontes_batch_destroy(batch);

  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.keep_marked_only = 1;
  CHECK_OK(brontes_batch_create(device, &options, &batch, &error));
  x = brontes_upload(batch, four, 4, NULL, 0);
  y = brontes_relu(batch, x);
  CHECK(brontes_keep(batch, y) == y);
  z = brontes_square(batch, y);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, y, 1, 2, 0, 4);
  float out[4];
  CHECK_STATUS(BRONTES_ERROR_NOT_KEPT, brontes_batch_read(batch, z, out, 4, &error));
  brontes_batch_destroy(batch);

  options.matmul = 50;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_create(device, &options, &batch, &error));
  CHECK(batch == NULL);
}

static void replay(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_tensor x;
  brontes_tensor out = relu_scale_add(batch, &x);
  brontes_memory_needs predicted = {0};
  predicted.struct_size = sizeof predicted;
  CHECK_OK(brontes_batch_predict_memory(batch, &predicted, &error));
  brontes_program* program = NULL;
  CHECK_OK(brontes_batch_compile(batch, &program, &error));
  brontes_tensor later = brontes_neg(batch, out);
  float y[4];
  CHECK_STATUS(BRONTES_ERROR_NOT_EXECUTED, brontes_program_read(program, out, y, 4, &error));
  for (int frame = 0; frame < 5; ++frame) {
    const float input[] = {(float)frame, -1, 2, 3};
    CHECK_OK(brontes_program_write(program, x, input, 4, &error));
    CHECK_OK(brontes_program_run(program, &error));
    CHECK_OK(brontes_program_read(program, out, y, 4, &error));
    CHECK(y[0] == 2 * (float)frame + .5f && y[1] == .5f && y[2] == 4.5f && y[3] == 6.5f);
    /* The batch may be reset and destroyed meanwhile. */
    if (frame == 1) {
      CHECK_OK(brontes_batch_reset(batch, &error));
      brontes_tensor next = brontes_upload(batch, four, 4, NULL, 0);
      CHECK_STATUS(BRONTES_ERROR_FOREIGN_TENSOR, brontes_program_write(program, next, four, 4, &error));
    }
    if (frame == 3) {
      brontes_batch_destroy(batch);
      batch = NULL;
    }
  }
  CHECK_STATUS(BRONTES_ERROR_INVALID_TENSOR, brontes_program_read(program, later, y, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_TENSOR, brontes_program_read(program, BRONTES_NO_TENSOR, y, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, brontes_program_write(program, x, four, 3, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_write(program, out, four, 4, &error));
  CHECK_STATUS(BRONTES_ERROR_TYPE_MISMATCH,
               brontes_program_write_i32(program, x, (const int32_t[]){1, 2, 3, 4}, 4, &error));
  brontes_batch_stats stats = {0};
  stats.struct_size = sizeof stats;
  CHECK_OK(brontes_program_get_stats(program, &stats, &error));
  CHECK(stats.submits == 5);
  brontes_memory_needs held = {0};
  held.struct_size = sizeof held;
  CHECK_OK(brontes_program_get_memory(program, &held, &error));
  CHECK(held.device_bytes == predicted.device_bytes && held.buffers == predicted.buffers && held.device_bytes > 0);
  char* text = NULL;
  CHECK_OK(brontes_program_dump(program, BRONTES_DUMP_JSON, &text, &error));
  CHECK(text != NULL && text[0] == '{');
  brontes_free(text);
  brontes_program_destroy(program);
}

static void integers(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_tensor x = brontes_upload_i32(batch, (const int32_t[]){1, 2, 3}, 3, NULL, 0);
  brontes_tensor y = brontes_mul(batch, x, x);
  brontes_program* program = NULL;
  CHECK_OK(brontes_batch_compile(batch, &program, &error));
  CHECK_OK(brontes_program_write_i32(program, x, (const int32_t[]){-4, 5, 6}, 3, &error));
  CHECK_OK(brontes_program_run(program, &error));
  int32_t out[3];
  CHECK_OK(brontes_program_read_i32(program, y, out, 3, &error));
  CHECK(out[0] == 16 && out[1] == 25 && out[2] == 36);
  brontes_program_destroy(program);
  brontes_batch_destroy(batch);
}

static void half_precision(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  const uint16_t one_and_a_half[2] = {0x3c00, 0x3800}; /* 1 and 0.5 */
  brontes_tensor x = brontes_upload_f16(batch, (const float[]){1.0f, 2049.0f}, 2, NULL, 0);
  brontes_tensor y = brontes_upload_f16_bits(batch, one_and_a_half, 2, NULL, 0);
  brontes_tensor sum = brontes_cast(batch, brontes_add(batch, x, y), BRONTES_DTYPE_F16);
  brontes_program* program = NULL;
  CHECK_OK(brontes_batch_compile(batch, &program, &error));
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, sum, 2, 2048); /* 2049 is not in f16, and 2048.5 is rounded down */
  uint16_t bits[2];
  CHECK_OK(brontes_batch_read_f16_bits(batch, sum, bits, 2, &error));
  CHECK(bits[0] == 0x4000 && bits[1] == 0x6800);
  CHECK_OK(brontes_program_write_f16_bits(program, x, one_and_a_half, 2, &error));
  CHECK_OK(brontes_program_run(program, &error));
  CHECK_OK(brontes_program_read_f16_bits(program, sum, bits, 2, &error));
  CHECK(bits[0] == 0x4000 && bits[1] == 0x3c00);
  CHECK_OK(brontes_program_write(program, x, (const float[]){-1, -0.5f}, 2, &error));
  CHECK_OK(brontes_program_run(program, &error));
  float out[2];
  CHECK_OK(brontes_program_read(program, sum, out, 2, &error));
  CHECK(out[0] == 0 && out[1] == 0);
  int32_t ints[2];
  CHECK_STATUS(BRONTES_ERROR_TYPE_MISMATCH, brontes_batch_read_i32(batch, sum, ints, 2, &error));
  brontes_program_destroy(program);
  brontes_batch_destroy(batch);
}

static void submissions(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_tensor x;
  brontes_tensor out = relu_scale_add(batch, &x);
  brontes_program* program = NULL;
  CHECK_OK(brontes_batch_compile(batch, &program, &error));
  brontes_submission *first = NULL, *second = NULL, *third = NULL;
  CHECK_OK(brontes_batch_submit(batch, &first, &error));
  CHECK_OK(brontes_program_submit(program, first, &second, &error));
  CHECK_OK(brontes_program_submit(program, NULL, NULL, &error));
  CHECK_OK(brontes_submission_wait(second, BRONTES_FOREVER, &error));
  CHECK(brontes_submission_ready(first) && brontes_submission_ready(second));
  CHECK_OK(brontes_submission_wait(second, 0, &error));
  EXPECT(batch, out, 2.5f, 4.5f, .5f, 8.5f);
  void* const not_a_submission = batch;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_submit(program, not_a_submission, &third, &error));
  CHECK(third == NULL);
  brontes_submission_destroy(first);
  brontes_submission_destroy(second);
  /* Nothing new to run: ready at once. */
  CHECK_OK(brontes_batch_submit(batch, &third, &error));
  CHECK(brontes_submission_ready(third));
  brontes_submission_destroy(third);
  brontes_program_destroy(program);
  brontes_batch_destroy(batch);
}

static void rebinding(void) {
  brontes_error error;
  brontes_buffer *a = NULL, *b = NULL;
  CHECK_OK(brontes_buffer_from(device, four, 4, NULL, 0, &a, &error));
  CHECK_OK(brontes_buffer_from(device, halves, 4, NULL, 0, &b, &error));
  brontes_batch* batch = new_batch();
  brontes_tensor x = brontes_import_buffer(batch, a), y = brontes_square(batch, x);
  brontes_program* program = NULL;
  CHECK_OK(brontes_batch_compile(batch, &program, &error));
  float out[4];
  CHECK_OK(brontes_program_run(program, &error));
  CHECK_OK(brontes_program_read(program, y, out, 4, &error));
  CHECK(out[2] == 9);
  CHECK_OK(brontes_program_rebind(program, x, b, &error));
  brontes_buffer_destroy(b);
  CHECK_OK(brontes_program_run(program, &error));
  CHECK_OK(brontes_program_read(program, y, out, 4, &error));
  CHECK(out[2] == .25f);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_rebind(program, x, NULL, &error));
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_program_rebind(program, y, a, &error));
  brontes_program_destroy(program);
  brontes_batch_destroy(batch);
  brontes_buffer_destroy(a);
}

static void many_tensors(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  /* Past several chunks of the table that numbers are looked up in, in two generations. */
  for (int generation = 0; generation < 2; ++generation) {
    brontes_tensor all[3000];
    all[0] = brontes_upload(batch, four, 4, NULL, 0);
    for (size_t i = 1; i < COUNT(all); ++i) all[i] = brontes_fill(batch, (float)i, BRONTES_SHAPE(i));
    int right = 1;
    for (size_t i = 1; i < COUNT(all); ++i) right = right && brontes_tensor_size(batch, all[i]) == i;
    CHECK(right);
    CHECK(brontes_tensor_size(batch, all[COUNT(all) - 1] + 1) == 0);
    CHECK_OK(brontes_batch_reset(batch, &error));
    CHECK(brontes_tensor_size(batch, all[5]) == 0);
  }
  brontes_batch_destroy(batch);
}

static void any_order(void) {
  brontes_error error;
  brontes_device* other = NULL;
  brontes_device_options options = {0};
  options.struct_size = sizeof options;
  CHECK_OK(brontes_device_open(&options, &other, &error));
  brontes_batch* batch = NULL;
  CHECK_OK(brontes_batch_create(other, NULL, &batch, &error));
  brontes_device_destroy(other);
  brontes_tensor x;
  brontes_tensor out = relu_scale_add(batch, &x);
  brontes_program* program = NULL;
  brontes_submission* submission = NULL;
  CHECK_OK(brontes_batch_compile(batch, &program, &error));
  CHECK_OK(brontes_program_submit(program, NULL, &submission, &error));
  brontes_batch_destroy(batch);
  float y[4];
  CHECK_OK(brontes_program_read(program, out, y, 4, &error));
  CHECK(y[3] == 8.5f);
  brontes_program_destroy(program);
  CHECK_OK(brontes_submission_wait(submission, BRONTES_FOREVER, &error));
  brontes_submission_destroy(submission);
}

static void inside(void) {
  brontes_error error;
  const float x[4] = {1, 2, -3, 4};
  brontes_batch* batch = NULL;
  CHECK_OK(brontes_batch_create(device, NULL, &batch, &error));
  (void)brontes_relu(batch, brontes_upload(batch, x, 4, NULL, 0));
  brontes_program* program = NULL;
  CHECK_OK(brontes_batch_compile(batch, &program, &error));

  brontes_profile_options options = {sizeof(options), 2, 1, 1e9, 1e9};
  char* text = NULL;
  CHECK_OK(brontes_program_profile(program, &options, BRONTES_DUMP_TEXT, &text, &error));
  CHECK(strstr(text, "relu") != NULL);
  CHECK(strstr(text, "of limit") != NULL);
  brontes_free(text);
  CHECK_OK(brontes_program_profile(program, NULL, BRONTES_DUMP_JSON, &text, &error));
  CHECK(strstr(text, "\"runs\": 5") != NULL);
  brontes_free(text);
  CHECK(brontes_program_profile(program, NULL, BRONTES_DUMP_DOT, &text, &error) == BRONTES_ERROR_INVALID_ARGUMENT);
  CHECK(text == NULL);

  int ok = 0;
  CHECK_OK(brontes_program_shadow_check(program, 1, BRONTES_DUMP_TEXT, &ok, &text, &error));
  CHECK(ok == 1);
  CHECK(strstr(text, "1 dispatches checked") != NULL);
  brontes_free(text);
  CHECK(brontes_program_shadow_check(program, 0, BRONTES_DUMP_TEXT, &ok, NULL, &error) ==
        BRONTES_ERROR_INVALID_ARGUMENT);

  CHECK(brontes_device_stop_trace(device, &text, &error) == BRONTES_ERROR_INVALID_ARGUMENT);
  CHECK_OK(brontes_device_start_trace(device, 0, &error));
  CHECK_OK(brontes_program_run(program, &error));
  CHECK_OK(brontes_device_stop_trace(device, &text, &error));
  CHECK(strstr(text, "\"cat\": \"device\"") != NULL);
  brontes_free(text);
  brontes_program_destroy(program);
  brontes_batch_destroy(batch);
}

void running_tests(void) {
  run("relu, scale and add are one dispatch, one submit and two transfers", one_submit);
  run("the options of a batch are heeded", batch_options);
  run("a program is replayed with new data, also after its batch is gone", replay);
  run("i32 goes in and out of programs", integers);
  run("f16 is written and read as floats and as bits", half_precision);
  run("submissions are waited for and chained", submissions);
  run("a program's import is bound to another buffer", rebinding);
  run("numbers of thousands of tensors lead to the right ones", many_tensors);
  run("objects are destroyed in any order", any_order);
  run("profiles, shadow checks and traces are text or JSON", inside);
}
