/* Structs of other sizes: of older programs, and of newer ones. */
#include "check.h"

#include <stddef.h>

static const float four[] = {1, 2, -3, 4};

/* As a program has it that was compiled before the members past keep_all were added. */
typedef struct old_batch_options {
  size_t struct_size;
  int32_t keep_all;
} old_batch_options;

/* As one has it that was compiled with a later version. */
typedef struct new_batch_options {
  brontes_batch_options known;
  uint64_t invented_later;
} new_batch_options;

static void older_options(void) {
  brontes_error error;
  brontes_batch* batch = NULL;
  /* What lies behind the struct must not be read as part of it. */
  struct {
    old_batch_options options;
    int32_t behind[32];
  } old;
  memset(&old, 0xff, sizeof old);
  old.options.struct_size = offsetof(old_batch_options, keep_all) + sizeof old.options.keep_all;
  old.options.keep_all = 1;
  CHECK_OK(brontes_batch_create(device, (const brontes_batch_options*)(const void*)&old, &batch, &error));
  brontes_tensor x = brontes_upload(batch, four, 4, NULL, 0), y = brontes_relu(batch, x), z = brontes_square(batch, y);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, y, 1, 2, 0, 4); /* keep_all was heeded, and keep_marked_only not */
  EXPECT(batch, z, 1, 4, 0, 16);
  brontes_batch_destroy(batch);

  /* A device's options without the later half, and limits without the last members. */
  struct {
    size_t struct_size;
    const char* select;
    unsigned char behind[200];
  } old_device;
  memset(&old_device, 0xff, sizeof old_device);
  old_device.struct_size = 2 * sizeof(void*);
  old_device.select = "no such device";
  brontes_device* other = NULL;
  CHECK_STATUS(BRONTES_ERROR_NO_DEVICE,
               brontes_device_open((const brontes_device_options*)(const void*)&old_device, &other, &error));
  old_device.select = NULL;
  CHECK_OK(brontes_device_open((const brontes_device_options*)(const void*)&old_device, &other, &error));
  brontes_device_destroy(other);

  brontes_matmul_options products;
  memset(&products, 0xff, sizeof products);
  products.struct_size = offsetof(brontes_matmul_options, has_alpha);
  products.layout = BRONTES_LAYOUT_NK;
  batch = new_batch();
  brontes_tensor a = brontes_upload(batch, four, 4, BRONTES_SHAPE(2, 2));
  brontes_tensor c = brontes_matmul(batch, a, a, &products);
  CHECK_OK(brontes_batch_execute(batch, &error));
  EXPECT(batch, c, 5, 5, 5, 25);
  brontes_batch_destroy(batch);
}

static void newer_options(void) {
  brontes_error error;
  brontes_batch* batch = NULL;
  new_batch_options options;
  memset(&options, 0, sizeof options);
  options.known.struct_size = sizeof options;
  options.known.no_fuse = 1;
  CHECK_OK(brontes_batch_create(device, &options.known, &batch, &error));
  brontes_batch_destroy(batch);
  options.invented_later = 1;
  CHECK_STATUS(BRONTES_ERROR_UNSUPPORTED, brontes_batch_create(device, &options.known, &batch, &error));
  CHECK(batch == NULL && strstr(error.message, "brontes_batch_options") != NULL);
}

static void forgotten_size(void) {
  brontes_error error;
  brontes_batch* batch = NULL;
  brontes_batch_options options = {0};
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_create(device, &options, &batch, &error));
  CHECK(strstr(error.message, "sizeof(brontes_batch_options)") != NULL);
  options.struct_size = (size_t)-1;
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_create(device, &options, &batch, &error));
  brontes_device_info info = {0};
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_device_get_info(device, &info, &error));
  brontes_matmul_options products = {0};
  batch = new_batch();
  brontes_tensor a = brontes_upload(batch, four, 4, BRONTES_SHAPE(2, 2));
  CHECK(brontes_matmul(batch, a, a, &products) == BRONTES_NO_TENSOR);
  CHECK_STATUS(BRONTES_ERROR_INVALID_ARGUMENT, brontes_batch_error(batch, &error));
  brontes_batch_destroy(batch);
}

static void results_of_other_sizes(void) {
  brontes_error error;
  brontes_batch* batch = new_batch();
  brontes_relu(batch, brontes_upload(batch, four, 4, NULL, 0));
  /* Shorter: nothing behind it is written. */
  struct {
    brontes_batch_stats stats;
    uint64_t behind;
  } room;
  memset(&room, 0x55, sizeof room);
  room.stats.struct_size = offsetof(brontes_batch_stats, values);
  CHECK_OK(brontes_batch_get_stats(batch, &room.stats, &error));
  CHECK(room.stats.struct_size == offsetof(brontes_batch_stats, values) && room.stats.operations == 1);
  CHECK(room.stats.values == UINT64_C(0x5555555555555555));
  /* Longer: what this library does not know is 0. */
  room.stats.struct_size = sizeof room;
  CHECK_OK(brontes_batch_get_stats(batch, &room.stats, &error));
  CHECK(room.stats.struct_size == sizeof room && room.stats.values == 2 && room.behind == 0);
  brontes_batch_destroy(batch);
}

void structs_tests(void) {
  run("options of an older program are shorter, and the rest is the default", older_options);
  run("options of a newer program work unless they ask for what is not there", newer_options);
  run("a forgotten struct_size is an error that says so", forgotten_size);
  run("results fill shorter and longer structs", results_of_other_sizes);
}
