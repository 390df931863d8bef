/* Every op, by its numbers. */
#include "check.h"

static brontes_batch* batch;

static brontes_tensor row(const float* data, size_t count) { return brontes_upload(batch, data, count, NULL, 0); }
#define ROW(...) row((const float[]){__VA_ARGS__}, COUNT(((const float[]){__VA_ARGS__})))
#define ROW_I32(...) \
  brontes_upload_i32(batch, (const int32_t[]){__VA_ARGS__}, COUNT(((const int32_t[]){__VA_ARGS__})), NULL, 0)

static void begin(void) { batch = new_batch(); }
static void execute(void) {
  brontes_error error;
  CHECK_OK(brontes_batch_execute(batch, &error));
}
static void end(void) {
  brontes_batch_destroy(batch);
  batch = NULL;
}

/* What the table has, each as its own function: the recording names the op, with as many operands and numbers. */
static void elementwise_names(void) {
  static const struct {
    const char* name;
    brontes_tensor (*one)(brontes_batch*, brontes_tensor);
    brontes_tensor (*one_p)(brontes_batch*, brontes_tensor, float);
    brontes_tensor (*one_pq)(brontes_batch*, brontes_tensor, float, float);
    brontes_tensor (*two)(brontes_batch*, brontes_tensor, brontes_tensor);
    brontes_tensor (*three)(brontes_batch*, brontes_tensor, brontes_tensor, brontes_tensor);
    int masks;
  } ops[] = {
#define ROW_none_f_1(op)
#define ROW_none_i_1(op)
#define ROW_i_i_0(op)
#define ROW_ii_i_0(op)
#define ROW_ii_m_0(op)
#define ROW_f_i_0(op)
#define ROW_f_m_0(op)
#define ROW_i_f_0(op)
#define ROW_i_m_0(op)
#define ROW_m_f_0(op)
#define ROW_m_i_0(op)
#define ROW_f_h_0(op)
#define ROW_h_f_0(op)
#define ROW_f_f_0(op) {#op, brontes_##op, NULL, NULL, NULL, NULL, 0},
#define ROW_t_t_0(op) {#op, brontes_##op, NULL, NULL, NULL, NULL, 0},
#define ROW_f_f_1(op) {#op, NULL, brontes_##op, NULL, NULL, NULL, 0},
#define ROW_f_f_2(op) {#op, NULL, NULL, brontes_##op, NULL, NULL, 0},
#define ROW_ff_f_0(op) {#op, NULL, NULL, NULL, brontes_##op, NULL, 0},
#define ROW_ff_m_0(op) {#op, NULL, NULL, NULL, brontes_##op, NULL, 0},
#define ROW_m_m_0(op) {#op, brontes_##op, NULL, NULL, NULL, NULL, 1},
#define ROW_mm_m_0(op) {#op, NULL, NULL, NULL, brontes_##op, NULL, 1},
#define ROW_mtt_t_0(op) {#op, NULL, NULL, NULL, NULL, brontes_##op, 0},
#define BRONTES_OP(name, code, arity, scalars, types, formula) ROW_##types##_##scalars(name)
#include "elementwise.def"
#undef BRONTES_OP
  };
  begin();
  brontes_error error;
  for (size_t i = 0; i < COUNT(ops); ++i) {
    CHECK_OK(brontes_batch_reset(batch, &error));
    brontes_tensor x = ROW(1, 2), y = ROW(3, 4), mask = brontes_cast(batch, ROW(1, 0), BRONTES_DTYPE_MASK);
    if (ops[i].masks) x = mask, y = mask;
    brontes_tensor out = BRONTES_NO_TENSOR;
    if (ops[i].one != NULL) out = ops[i].one(batch, x);
    if (ops[i].one_p != NULL) out = ops[i].one_p(batch, x, 0.5f);
    if (ops[i].one_pq != NULL) out = ops[i].one_pq(batch, x, 0.25f, 0.5f);
    if (ops[i].two != NULL) out = ops[i].two(batch, x, y);
    if (ops[i].three != NULL) out = ops[i].three(batch, mask, x, y);
    CHECK(out != BRONTES_NO_TENSOR);
    char* text = NULL;
    CHECK_OK(brontes_batch_dump(batch, BRONTES_DUMP_TEXT, BRONTES_DUMP_RECORDED, &text, &error));
    char line[80];
    snprintf(line, sizeof line, "\n%s ", ops[i].name);
    if (text == NULL || strstr(text, line) == NULL) {
      fprintf(stderr, "brontes_%s did not record %s:\n%s\n", ops[i].name, ops[i].name, text == NULL ? "" : text);
      ++failures;
    }
    brontes_free(text);
  }
  CHECK(COUNT(ops) > 40);
  end();
}

static void elementwise_operands(void) {
  begin();
  brontes_tensor x = ROW(-2, 1, 3), y = ROW(4, 2, 1);
  brontes_tensor sub = brontes_sub(batch, x, y), div = brontes_div(batch, x, y), power = brontes_pow(batch, y, x);
  brontes_tensor clamp = brontes_clamp(batch, x, -1, 2), scale = brontes_scale(batch, x, 3);
  brontes_tensor mask = brontes_lt(batch, x, y), chosen = brontes_where(batch, mask, x, y);
  brontes_tensor ints = brontes_sub(batch, ROW_I32(7, -7), ROW_I32(2, 3));
  brontes_tensor cast = brontes_cast(batch, ROW(2.75f, -2.75f), BRONTES_DTYPE_I32);
  brontes_tensor filled = brontes_fill(batch, 1.5f, BRONTES_SHAPE(3)),
                 fives = brontes_fill_i32(batch, 5, BRONTES_SHAPE(2));
  execute();
  EXPECT(batch, sub, -6, -1, 2);
  EXPECT(batch, div, -0.5f, 0.5f, 3);
  EXPECT(batch, power, 0.0625f, 2, 1);
  EXPECT(batch, clamp, -1, 1, 2);
  EXPECT(batch, scale, -6, 3, 9);
  EXPECT(batch, chosen, -2, 1, 1);
  EXPECT_I32(batch, ints, 5, -10);
  EXPECT_I32(batch, cast, 2, -2);
  EXPECT(batch, filled, 1.5f, 1.5f, 1.5f);
  EXPECT_I32(batch, fives, 5, 5);
  CHECK(brontes_tensor_dtype(batch, mask) == BRONTES_DTYPE_MASK);
  CHECK(brontes_tensor_size(batch, ints) == 2);
  end();
}

static const float six[] = {1, 2, 3, 4, 5, 6};
static brontes_tensor two_by_three(void) { return brontes_upload(batch, six, 6, BRONTES_SHAPE(2, 3)); }

static int has_shape(brontes_tensor x, const uint64_t* dims, size_t rank) {
  uint64_t found[BRONTES_MAX_RANK] = {0};
  return brontes_tensor_shape(batch, x, found) == rank && memcmp(found, dims, rank * sizeof *dims) == 0;
}

static void views(void) {
  begin();
  brontes_tensor x = two_by_three();
  brontes_tensor reshaped = brontes_reshape(batch, x, BRONTES_SHAPE(3, 2)), flat = brontes_flatten(batch, x);
  brontes_tensor more = brontes_unsqueeze(batch, x, 0), less = brontes_squeeze(batch, more);
  CHECK(has_shape(reshaped, BRONTES_SHAPE(3, 2)));
  CHECK(has_shape(flat, BRONTES_SHAPE(6)));
  CHECK(has_shape(more, BRONTES_SHAPE(1, 2, 3)));
  CHECK(has_shape(less, BRONTES_SHAPE(2, 3)));
  brontes_tensor slice = brontes_slice(batch, x, BRONTES_RANGES({0, 1, 1}, {0, BRONTES_PAST_LAST, 2}));
  brontes_tensor backwards = brontes_slice_axis(batch, x, 1, BRONTES_PAST_LAST, BRONTES_BEFORE_FIRST, -1);
  brontes_tensor permuted = brontes_permute(batch, x, BRONTES_AXES(1, 0)), turned = brontes_transpose(batch, x);
  brontes_tensor wide = brontes_expand(batch, ROW(7, 8), BRONTES_SHAPE(2, 2));
  brontes_tensor parts[3] = {0};
  CHECK_STATUS(BRONTES_OK, brontes_split(batch, x, 3, 1, parts));
  brontes_tensor joined = brontes_concat(batch, BRONTES_TENSORS(parts[2], parts[0]), 0);
  execute();
  EXPECT(batch, slice, 1, 3);
  EXPECT(batch, backwards, 3, 2, 1, 6, 5, 4);
  EXPECT(batch, permuted, 1, 4, 2, 5, 3, 6);
  EXPECT(batch, turned, 1, 4, 2, 5, 3, 6);
  EXPECT(batch, wide, 7, 8, 7, 8);
  EXPECT(batch, joined, 3, 6, 1, 4);
  EXPECT(batch, parts[1], 2, 5);
  CHECK(has_shape(joined, BRONTES_SHAPE(4, 1)));
  end();
}

static void reductions(void) {
  begin();
  brontes_tensor x = two_by_three();
  brontes_tensor sum = brontes_sum(batch, x, NULL, 0, 0), columns = brontes_sum(batch, x, BRONTES_AXES(0), 0);
  brontes_tensor kept = brontes_sum(batch, x, BRONTES_AXES(-1), 1), mean = brontes_mean(batch, x, BRONTES_AXES(1), 0);
  brontes_tensor prod = brontes_prod(batch, x, BRONTES_AXES(1), 0),
                 high = brontes_reduce_max(batch, x, BRONTES_AXES(1), 0);
  brontes_tensor low = brontes_reduce_min(batch, x, NULL, 0, 0),
                 squares = brontes_sum_of_squares(batch, x, BRONTES_AXES(1), 0);
  brontes_tensor l1 = brontes_l1_norm(batch, brontes_neg(batch, x), BRONTES_AXES(1), 0);
  brontes_tensor l2 = brontes_l2_norm(batch, ROW(3, 4), BRONTES_AXES(0), 0);
  brontes_tensor lse = brontes_logsumexp(batch, ROW(0, 0), BRONTES_AXES(0), 0);
  brontes_tensor mask = brontes_gt(batch, x, ROW(3));
  brontes_tensor any = brontes_any(batch, mask, BRONTES_AXES(1), 0), all = brontes_all(batch, mask, BRONTES_AXES(1), 0);
  brontes_tensor dot = brontes_dot(batch, ROW(1, 2), ROW(3, 4));
  brontes_tensor most = brontes_argmax(batch, x, 0, 0), least = brontes_argmin(batch, x, -1, 1);
  execute();
  EXPECT(batch, sum, 21);
  EXPECT(batch, columns, 5, 7, 9);
  EXPECT(batch, kept, 6, 15);
  CHECK(has_shape(kept, BRONTES_SHAPE(2, 1)));
  EXPECT(batch, mean, 2, 5);
  EXPECT(batch, prod, 6, 120);
  EXPECT(batch, high, 3, 6);
  EXPECT(batch, low, 1);
  EXPECT(batch, squares, 14, 77);
  EXPECT(batch, l1, 6, 15);
  EXPECT(batch, l2, 5);
  EXPECT(batch, lse, 0.6931472f);
  EXPECT_I32(batch, any, 0, 1);
  EXPECT_I32(batch, all, 0, 1);
  EXPECT(batch, dot, 11);
  EXPECT_I32(batch, most, 1, 1, 1);
  EXPECT_I32(batch, least, 0, 0);
  CHECK(has_shape(least, BRONTES_SHAPE(2, 1)));
  end();
}

static void rows(void) {
  begin();
  brontes_tensor x = two_by_three();
  brontes_tensor gathered = brontes_gather(batch, x, ROW_I32(1, 0, -1));
  brontes_tensor updated =
      brontes_update_rows(batch, x, ROW_I32(1), brontes_reshape(batch, ROW(7, 8, 9), BRONTES_SHAPE(1, 3)));
  brontes_tensor soft = brontes_softmax(batch, ROW(0, 0), -1), log_soft = brontes_log_softmax(batch, ROW(0, 0), 0);
  brontes_tensor added = brontes_cumsum(batch, x, 1);
  brontes_tensor layer = brontes_layer_norm(batch, ROW(-1, 1), ROW(2, 2), ROW(1, 1), 0);
  brontes_tensor plain = brontes_layer_norm_plain(batch, ROW(-3, 3), 0);
  brontes_tensor rms = brontes_rms_norm(batch, ROW(3, 3), ROW(2, 4), 0),
                 rms_plain = brontes_rms_norm_plain(batch, ROW(5, -5), 0);
  execute();
  EXPECT(batch, gathered, 4, 5, 6, 1, 2, 3, 4, 5, 6);
  EXPECT(batch, updated, 1, 2, 3, 7, 8, 9);
  EXPECT(batch, soft, 0.5f, 0.5f);
  EXPECT(batch, log_soft, -0.6931472f, -0.6931472f);
  EXPECT(batch, added, 1, 3, 6, 4, 9, 15);
  EXPECT(batch, layer, -1, 3);
  EXPECT(batch, plain, -1, 1);
  EXPECT(batch, rms, 2, 4);
  EXPECT(batch, rms_plain, 1, -1);
  end();
}

static void products(void) {
  begin();
  brontes_tensor a = two_by_three(), b = brontes_upload(batch, six, 6, BRONTES_SHAPE(3, 2));
  brontes_matmul_options options = {0};
  options.struct_size = sizeof options;
  brontes_tensor c = brontes_matmul(batch, a, b, NULL);
  options.layout = BRONTES_LAYOUT_NK;
  options.has_alpha = 1;
  options.alpha = 0.5f;
  brontes_tensor nk = brontes_matmul(batch, a, a, &options);
  options.alpha = 0;
  brontes_tensor zero = brontes_matmul(batch, a, a, &options);
  options.layout = BRONTES_LAYOUT_KN;
  options.has_alpha = 0;
  options.kernel = BRONTES_MATMUL_NAIVE;
  brontes_tensor flat = brontes_matmul_flat(batch, a, b, 2, 3, 2, &options);
  brontes_tensor linear = brontes_linear(batch, a, a), biased = brontes_linear_bias(batch, a, a, ROW(10, 20));
  execute();
  EXPECT(batch, c, 22, 28, 49, 64);
  EXPECT(batch, nk, 7, 16, 16, 38.5f);
  EXPECT(batch, zero, 0, 0, 0, 0);
  EXPECT(batch, flat, 22, 28, 49, 64);
  EXPECT(batch, linear, 14, 32, 32, 77);
  EXPECT(batch, biased, 24, 52, 42, 97);
  end();
}

static void explained(void) {
  brontes_error error;
  brontes_matmul_choice choice = {0};
  choice.struct_size = sizeof choice;
  char* reason = NULL;
  CHECK_OK(brontes_explain_matmul(device, BRONTES_SHAPE(4, 8), BRONTES_SHAPE(8, 16), NULL, &choice, &reason, &error));
  CHECK(choice.kernel != BRONTES_MATMUL_AUTOMATIC);
  CHECK(choice.dispatches >= 1);
  CHECK(reason != NULL && strlen(reason) > 0);
  CHECK(strcmp(brontes_matmul_kernel_name(choice.kernel), "unknown") != 0);
  brontes_free(reason);
  CHECK(brontes_matmul_variants(BRONTES_MATMUL_TILED, BRONTES_LAYOUT_KN) > 0);
  CHECK(brontes_matmul_variants(77, BRONTES_LAYOUT_KN) == 0);
}

void ops_tests(void) {
  run("every elementwise function records its op", elementwise_names);
  run("elementwise ops get their operands in order", elementwise_operands);
  run("views, slices and joins choose the right elements", views);
  run("reductions reduce the axes they are given", reductions);
  run("row ops give the right numbers", rows);
  run("products take layouts, alpha and bias", products);
  run("the selector explains itself", explained);
}
