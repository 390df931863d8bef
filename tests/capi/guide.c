/* What docs/c-api.md shows, run. */
#include "check.h"

static const float input[] = {1, 2, 3, 4, 5, 6};

static void options(void) {
  brontes_error error;
  brontes_device* gpu = NULL;
  // snippet: options
  brontes_device_options options = {.struct_size = sizeof options, .select = "llvmpipe", .validation = BRONTES_ON};
  brontes_status status = brontes_device_open(&options, &gpu, &error);
  // end
  CHECK(status == BRONTES_OK || status == BRONTES_ERROR_NO_DEVICE || status == BRONTES_ERROR_UNSUPPORTED);
  brontes_device_destroy(gpu);
}

static void shapes(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  // snippet: shapes
  brontes_tensor x = brontes_upload(batch, input, 6, BRONTES_SHAPE(2, 3));
  brontes_tensor rows = brontes_sum(batch, x, BRONTES_AXES(-1), 0);                       // {2}
  brontes_tensor total = brontes_sum(batch, x, NULL, 0, 0);                               // {1}
  brontes_tensor middle = brontes_slice(batch, x, BRONTES_RANGES({0, 2, 1}, {1, 2, 1}));  // x[0:2, 1:2]
  brontes_tensor both = brontes_concat(batch, BRONTES_TENSORS(x, x), 0);                  // {4, 3}
  // end
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, rows, 6, 15);
  EXPECT(batch, total, 21);
  EXPECT(batch, middle, 2, 5);
  EXPECT(batch, both, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6);
  brontes_batch_destroy(batch);
}

static void sticky(void) {
  brontes_batch* batch = new_batch();
  brontes_tensor x = brontes_upload(batch, input, 6, NULL, 0), y = brontes_upload(batch, input, 4, NULL, 0);
  // snippet: sticky
  brontes_error error;
  brontes_tensor z = brontes_relu(batch, brontes_add(batch, x, y));  // sizes that do not fit: BRONTES_NO_TENSOR
  if (brontes_batch_execute(batch, &error) == BRONTES_ERROR_SHAPE_MISMATCH) puts(error.message);
  brontes_batch_clear_error(batch, NULL);  // what was recorded before stays
  // end
  CHECK(z == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_SHAPE_MISMATCH, error.status);
  CHECK_OK(brontes_batch_execute(batch, &error));
  brontes_batch_destroy(batch);
}

static brontes_status frames(brontes_batch* batch, brontes_tensor x, brontes_tensor y, float* out,
                             brontes_error* error) {
  // snippet: program
  brontes_program* program = NULL;
  brontes_status status = brontes_batch_compile(batch, &program, error);
  for (int frame = 0; frame < 3 && status == BRONTES_OK; ++frame) {
    const float next[] = {(float)frame, 1, 2, 3};
    status = brontes_program_write(program, x, next, 4, error);
    if (status == BRONTES_OK) status = brontes_program_run(program, error);
    if (status == BRONTES_OK) status = brontes_program_read(program, y, out, 4, error);
  }
  brontes_program_destroy(program);
  // end
  return status;
}

static void programs(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_tensor x = brontes_upload(batch, input, 4, NULL, 0), y = brontes_square(batch, x);
  float out[4] = {0};
  CHECK_OK(frames(batch, x, y, out, &error));
  CHECK(out[0] == 4 && out[3] == 9);
  brontes_batch_destroy(batch);
}

static void cached_products(void) {
  brontes_error error;
  brontes_matmul_cache* cache = NULL;
  float y[2] = {0};
  CHECK_OK(brontes_matmul_cache_create(device, NULL, &cache, &error));
  // snippet: cache
  const float weights[] = {1, 2, 3, 4, 5, 6}, bias[] = {.5f, -.5f}, x[] = {1, 1, 1};
  brontes_status status =
      brontes_matmul_cache_upload_weight(cache, "fc1", weights, 6, 2, 3, BRONTES_DTYPE_F16, bias, 2, &error);
  const brontes_matmul_epilogue relu = {.struct_size = sizeof relu, .activation = BRONTES_ACTIVATION_RELU};
  if (status == BRONTES_OK) status = brontes_matmul_cache_matmul(cache, "fc1", x, 3, y, 2, 1, &relu, &error);
  // end
  CHECK_STATUS(BRONTES_OK, status);
  CHECK(y[0] == 6.5f && y[1] == 14.5f);
  brontes_matmul_cache_destroy(cache);
}

void guide_tests(void) {
  run("the guide's device options", options);
  run("the guide's shapes, axes and ranges", shapes);
  run("the guide's recording error", sticky);
  run("the guide's program", programs);
  run("the guide's matmul cache", cached_products);
}
