/* SPDX-License-Identifier: MIT */
#ifndef BRONTES_BRONTES_H
#define BRONTES_BRONTES_H

/**
 * Brontes for C, and for every language that can call C. C11 and later, C++ too.
 *
 *     brontes_device* device = NULL;
 *     brontes_batch* batch = NULL;
 *     brontes_error error;
 *     if (brontes_device_open(NULL, &device, &error) != BRONTES_OK) return fail(&error);
 *     if (brontes_batch_create(device, NULL, &batch, &error) != BRONTES_OK) return fail(&error);
 *
 *     brontes_tensor x = brontes_upload(batch, input, 4, NULL, 0);
 *     brontes_tensor y = brontes_scale(batch, brontes_relu(batch, x), 2.0f);
 *     if (brontes_batch_execute(batch, &error) != BRONTES_OK) return fail(&error);
 *     if (brontes_batch_read(batch, y, output, 4, &error) != BRONTES_OK) return fail(&error);
 *
 *     brontes_batch_destroy(batch);
 *     brontes_device_destroy(device);
 *
 * The engine is that of the C++ headers; docs/c-api.md is a guide.
 *
 * **Status.** A function that can fail returns a brontes_status, BRONTES_OK or what went wrong, and takes a pointer to
 * a brontes_error as its last parameter, for the message. The struct is the caller's and the pointer may be null. The
 * library keeps no "last error" of its own: there is nothing to race for, no storage per thread, and a program may call
 * from one thread and look at the error in another. A call that failed has changed nothing, except where its own
 * documentation says so, and has set the handle it was to return to null.
 *
 * **Handles** are pointers to opaque structs. What a function returns through a pointer to a handle is the caller's,
 * who destroys it with the function of its type; those take null and then do nothing. Objects may be destroyed in any
 * order, also with work in flight: each keeps what it needs of the others. A null handle, or one of another type, is
 * BRONTES_ERROR_INVALID_ARGUMENT; one that was destroyed must not be used.
 *
 * **Tensors** are numbers. One of another batch, or from before brontes_batch_reset(), is an error, never a wrong
 * answer; so is any number that no call has returned.
 *
 * **Recording errors stick.** An op on a bad tensor or with sizes that do not fit is not recorded. It returns
 * BRONTES_NO_TENSOR, and the first such error is what brontes_batch_execute() reports, so that calls can be nested.
 *
 * **Options and information** are structs whose first member, struct_size, is set to their sizeof by the caller. They
 * grow at their end in later versions. A program that was compiled with a shorter one works with later libraries: what
 * it does not have is the default. One that was compiled with a longer one works with an older library as long as what
 * that does not know is 0; otherwise the call fails with BRONTES_ERROR_UNSUPPORTED. In options, 0 is the default of
 * every member, so set struct_size and the members that matter, and leave the rest 0. Null stands for all defaults.
 *
 * **Strings** are UTF-8 and end with NUL. Those passed in are copied. Those returned through a char** are the caller's,
 * to be freed with brontes_free(). A const char* inside of a struct belongs to the handle that was asked.
 *
 * **Flags** are ints, 0 for false and anything else for true. **Enums** are int32_t with named values; a value without
 * a name is BRONTES_ERROR_INVALID_ARGUMENT.
 *
 * **Exceptions** never leave the library, which needs no C++ in the program that calls it. Callbacks must not throw
 * or longjmp.
 *
 * **Thread-safety.** A device, a device list, a weight, a kernel, a submission and a matmul cache may be used by any
 * number of threads at once. A batch or a program belongs to one thread at a time. A buffer may be read, imported and
 * stored to by several threads; writing to it must not run together with another use. A handle may be destroyed while
 * others made from it are in use, but not while a call that was given it is still running.
 */

#include <brontes/export.hpp>
#include <brontes/version.hpp>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Status ------------------------------------------------------------------------------------------------------ */

/** What went wrong, or BRONTES_OK. The values are those of brontes::Errc and never change. */
typedef int32_t brontes_status;
enum {
  BRONTES_OK = 0,

  /* The caller's input. */
  BRONTES_ERROR_INVALID_ARGUMENT = 1, /**< an option, argument or handle that can never be right */
  BRONTES_ERROR_EMPTY_INPUT = 2,      /**< no data where an op needs at least one element */
  BRONTES_ERROR_NULL_DATA = 3,        /**< a null pointer with a size that is not zero */
  BRONTES_ERROR_SHAPE_MISMATCH = 4,   /**< the operands' shapes, or data and shape, do not fit each other */
  BRONTES_ERROR_TYPE_MISMATCH = 5,    /**< the operands' types, or a value and host data, do not fit */
  BRONTES_ERROR_SIZE_OVERFLOW = 6,    /**< a size that does not fit in 64 bits */
  BRONTES_ERROR_LIMIT_EXCEEDED = 7,   /**< larger than this device can do; the message names the limit */
  BRONTES_ERROR_NOT_FOUND = 8,        /**< no weight has that name */
  BRONTES_ERROR_ALREADY_EXISTS = 9,   /**< a weight has that name; replacing is another call */

  /* Tensors. */
  BRONTES_ERROR_INVALID_TENSOR = 10, /**< BRONTES_NO_TENSOR: what an op that failed has returned */
  BRONTES_ERROR_FOREIGN_TENSOR = 11, /**< a tensor of another batch */
  BRONTES_ERROR_STALE_TENSOR = 12,   /**< a tensor from before brontes_batch_reset(); 16 resets later it is foreign */
  BRONTES_ERROR_NOT_EXECUTED = 13,   /**< reading a value whose op has not been executed yet */
  BRONTES_ERROR_NOT_KEPT = 14,       /**< the value was consumed by other ops and not marked with brontes_keep() */

  /* Finding a device. */
  BRONTES_ERROR_NO_LOADER = 15, /**< the Vulkan loader library is not installed */
  BRONTES_ERROR_NO_DRIVER = 16, /**< the loader found no Vulkan driver */
  BRONTES_ERROR_NO_DEVICE = 17, /**< there are devices, but none that meets the options */

  /* Running. */
  BRONTES_ERROR_OUT_OF_MEMORY = 18, /**< host or device memory is exhausted */
  BRONTES_ERROR_DEVICE_LOST = 19,   /**< the device is lost, or the process was forked; open a new one */
  BRONTES_ERROR_TIMEOUT = 20,       /**< the wait ended before the work did */
  BRONTES_ERROR_UNSUPPORTED = 21,   /**< the device, driver or library lacks something that was asked for */
  BRONTES_ERROR_IO = 22,            /**< a file could not be read or written */
  BRONTES_ERROR_VULKAN = 23         /**< any other failing Vulkan call; see brontes_error.vk_result */
};

#define BRONTES_MESSAGE_SIZE 1016

/** Why a call failed. Filled by every call that is given one, with BRONTES_OK and no message where all is well; it
 *  need not be initialised. This struct does not grow. */
typedef struct brontes_error {
  brontes_status status;
  int32_t vk_result;                  /**< the VkResult behind the error, or 0 */
  char message[BRONTES_MESSAGE_SIZE]; /**< for people: names the op, the sizes and what was expected. Cut off where
                                           it is longer */
} brontes_error;

/** The name of a status, for example "shape_mismatch"; "unknown" for other numbers. Never null. */
BRONTES_API const char* brontes_status_name(brontes_status status);

/** The version of the library that is linked, for example "0.1.0". Never null. BRONTES_VERSION_MAJOR, _MINOR and _PATCH
 *  are that of the headers. */
BRONTES_API const char* brontes_version(void);

/** Frees what a function returned through a char** or char***. Null is fine. */
BRONTES_API void brontes_free(void* memory);

/* --- Types ------------------------------------------------------------------------------------------------------- */

typedef struct brontes_device brontes_device;             /**< a Vulkan device, its queue, memory and pipelines */
typedef struct brontes_device_list brontes_device_list;   /**< the devices of this machine */
typedef struct brontes_buffer brontes_buffer;             /**< device memory that outlives batches */
typedef struct brontes_weight brontes_weight;             /**< a resident matrix for products */
typedef struct brontes_kernel brontes_kernel;             /**< a compute shader of your own */
typedef struct brontes_batch brontes_batch;               /**< records ops and runs them with one submit */
typedef struct brontes_program brontes_program;           /**< a batch that is planned and encoded for many runs */
typedef struct brontes_submission brontes_submission;     /**< work that was submitted: a point on a timeline */
typedef struct brontes_matmul_cache brontes_matmul_cache; /**< weights by name, and products with them */

/** A value of one batch: what an op returned, or what was uploaded or imported. A plain number, there is nothing to
 *  destroy. */
typedef uint64_t brontes_tensor;
/** What an op returns that was not recorded. */
#define BRONTES_NO_TENSOR UINT64_C(0)

/** The most dims a tensor has. */
#define BRONTES_MAX_RANK 8

/** How elements are stored. Values of a batch are f32, f16, i32 or masks, the others are for weights only. Wherever an
 * op takes f32, f16 will do: it is f32 once it is loaded. What computes gives f32, and brontes_cast() says what is to
 * be stored as f16. */
typedef int32_t brontes_dtype;
enum {
  BRONTES_DTYPE_F32 = 0,
  BRONTES_DTYPE_F16 = 1,  /**< IEEE 754 binary16 */
  BRONTES_DTYPE_BF16 = 2, /**< the upper half of an f32 */
  BRONTES_DTYPE_Q8_0 = 3, /**< GGUF's Q8_0: blocks of 32 along a row, an f16 scale and 32 signed bytes */
  BRONTES_DTYPE_Q4_0 = 4, /**< GGUF's Q4_0: blocks of 32 along a row, an f16 scale and 32 numbers of 4 bits */
  BRONTES_DTYPE_I32 = 5,  /**< 32-bit two's complement; overflow wraps around */
  BRONTES_DTYPE_MASK = 6  /**< true or false, a 32-bit 1 or 0 */
};

/** "f32", "q8_0" and so on; "unknown" for other numbers. Never null. */
BRONTES_API const char* brontes_dtype_name(brontes_dtype dtype);
/** Bytes of a row of `columns` elements, as brontes_weight_from_stored() takes it; a part of a block counts as a whole
 *  one. 0 for a type without a name. */
BRONTES_API uint64_t brontes_dtype_row_bytes(brontes_dtype dtype, uint64_t columns);

/** What a slice takes of one dim: begin, begin + step, ... up to but not including end, as begin:end:step in numpy.
 *  A negative begin or end counts from the end of the dim, and what lies outside of the dim is cut off. The step is
 *  not 0; with a negative one the elements come in reverse. */
typedef struct brontes_range {
  int64_t begin;
  int64_t end;
  int64_t step;
} brontes_range;

#define BRONTES_BEFORE_FIRST INT64_MIN /**< an end that takes the first element too, in reverse */
#define BRONTES_PAST_LAST INT64_MAX    /**< an end that takes the last element too */

/* Lists as arguments, in C: a pointer and a count.
 *
 *     x = brontes_upload(batch, data, 6, BRONTES_SHAPE(2, 3));
 *     y = brontes_sum(batch, x, BRONTES_AXES(-1), 0);
 *     z = brontes_slice(batch, x, BRONTES_RANGES({0, 1, 1}, {0, BRONTES_PAST_LAST, 2}));
 */
#ifndef __cplusplus
#  define BRONTES_SHAPE(...) (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)
#  define BRONTES_AXES(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#  define BRONTES_RANGES(...) \
    (const brontes_range[]){__VA_ARGS__}, sizeof((const brontes_range[]){__VA_ARGS__}) / sizeof(brontes_range)
#  define BRONTES_TENSORS(...) \
    (const brontes_tensor[]){__VA_ARGS__}, sizeof((const brontes_tensor[]){__VA_ARGS__}) / sizeof(brontes_tensor)
#endif

/* --- Devices ----------------------------------------------------------------------------------------------------- */

typedef int32_t brontes_device_type;
enum {
  BRONTES_DEVICE_OTHER = 0,
  BRONTES_DEVICE_INTEGRATED_GPU = 1,
  BRONTES_DEVICE_DISCRETE_GPU = 2,
  BRONTES_DEVICE_VIRTUAL_GPU = 3,
  BRONTES_DEVICE_CPU = 4
};
/** "discrete GPU", "CPU driver" and so on. Never null. */
BRONTES_API const char* brontes_device_type_name(brontes_device_type type);

typedef int32_t brontes_severity;
enum { BRONTES_SEVERITY_INFO = 0, BRONTES_SEVERITY_WARNING = 1, BRONTES_SEVERITY_ERROR = 2 };

/** Receives validation messages and the library's own, which begin with "brontes: ". May be called from any thread that
 * uses the device, also while it is opened or destroyed; must not call back into the library. `text` is valid during
 * the call. */
typedef void (*brontes_message_callback)(void* user_data, brontes_severity severity, const char* text);

typedef int32_t brontes_toggle;
enum { BRONTES_AUTOMATIC = 0, BRONTES_OFF = 1, BRONTES_ON = 2 };

/** How kernels access memory. Affects speed only, never results. */
typedef int32_t brontes_access_mode;
enum {
  BRONTES_ACCESS_AUTOMATIC = 0, /**< what was measured fastest, otherwise the fastest mode known for the driver */
  BRONTES_ACCESS_STORAGE = 1,   /**< storage buffers: right for every GPU */
  BRONTES_ACCESS_TEXEL = 2,     /**< inputs through uniform texel buffers: faster with lavapipe before Mesa 25 */
  BRONTES_ACCESS_POINTER = 3    /**< buffer device addresses: the fastest with later lavapipe */
};
/** "storage", "texel" and so on. Never null. */
BRONTES_API const char* brontes_access_mode_name(brontes_access_mode mode);

/** Lowers a device's limits, to test the code paths of smaller devices. 0 keeps the device's own value; values above it
 *  have no effect. */
typedef struct brontes_simulated_limits {
  size_t struct_size;
  uint32_t max_group_count;       /**< workgroups per axis of one dispatch */
  uint32_t max_group_invocations; /**< invocations of one workgroup */
  uint32_t max_shared_bytes;      /**< shared memory of one workgroup */
  uint32_t max_loop_iterations;   /**< loop iterations of one invocation */
  uint64_t max_storage_range;     /**< bytes of one tensor */
  uint32_t subgroup_size;         /**< invocations of one subgroup */
  int32_t no_subgroup_operations; /**< no arithmetic or ballots within a subgroup */
  int32_t no_float_controls;      /**< shaders cannot ask for NaN and infinities to be kept */
  int32_t staged_memory;          /**< no mapped device memory: everything goes through staging */
  int32_t no_timestamps;          /**< the queue has no timestamps: nothing can be profiled */
  /** The subgroup size is neither fixed nor can pipelines require one. */
  int32_t no_subgroup_size_control;
  uint32_t vendor_id;      /**< kernels are chosen as for this vendor's devices */
  int32_t uncached_memory; /**< the host writes device memory directly, and reads it through staging */
} brontes_simulated_limits;

typedef struct brontes_device_options {
  size_t struct_size;
  /** Which device: an index into the device list, a part of the name (any case), or a UUID in hex. Null or empty: the
   *  environment variable BRONTES_DEVICE, read the same way, and if that is empty too the best device. */
  const char* select;
  /** Not a CPU driver (lavapipe, SwiftShader): BRONTES_ERROR_NO_DEVICE instead of a slow surprise. */
  int32_t no_cpu;
  /** The Khronos validation layer with synchronization validation. Automatic: the environment variable
   *  BRONTES_VALIDATION (0 or 1). BRONTES_ERROR_UNSUPPORTED if it is on and not installed. */
  brontes_toggle validation;
  /** Null: validation messages go to stderr and notes are dropped. Must stay callable, and user_data valid, until
   *  everything made from the device is destroyed. */
  brontes_message_callback on_message;
  void* user_data;
  /** How many distinct fused programs this device builds pipelines for; further ones run unfused. 0: 256. */
  uint64_t max_fused_programs;
  /** BRONTES_ACCESS_POINTER where the device cannot do that: BRONTES_ERROR_UNSUPPORTED. */
  brontes_access_mode access;
  int32_t no_pipeline_cache;       /**< neither read nor write the file of compiled pipelines */
  const char* pipeline_cache_path; /**< null or empty: a file per device and driver in the user's cache folder */
  int32_t no_pipeline_cache_save;  /**< not when the device is destroyed, only by the function that saves it */
  int32_t no_tuning;               /**< the shipped defaults, whatever was measured */
  const char* tuning_path;         /**< null or empty: beside the pipeline cache */
  const brontes_simulated_limits* simulate; /**< null: none */
  /** Bytes of device memory that all buffers of the device together may take; 0: no limit. A call that would need more
   *  first has memory that is kept for later given back, and then fails with BRONTES_ERROR_OUT_OF_MEMORY. */
  uint64_t memory_cap;
  /** Do not measure on a CPU driver, once and for 0.15 s at most, how elementwise ops reach memory best there. */
  int32_t no_calibration;
  int32_t reserved; /**< 0 */
  /** The bytes of the pipeline cache in place of a file, for applications that keep them themselves; with either of
   * these pipeline_cache_path is not used. They are called with pipeline_cache_data by the thread that opens, saves or
   * closes the device, and may not use it. `load` gives the number of bytes that were stored last, and copies them to
   * `bytes` where that is not null and `size` is their number: it is called twice. `store` returns 0 if it could not
   * keep them. */
  size_t (*load_pipeline_cache)(void* pipeline_cache_data, uint8_t* bytes, size_t size);
  int32_t (*store_pipeline_cache)(void* pipeline_cache_data, const uint8_t* bytes, size_t size);
  void* pipeline_cache_data;
} brontes_device_options;

/** One Vulkan device. The strings belong to the device or the list that was asked. */
typedef struct brontes_device_info {
  size_t struct_size;
  const char* name;
  const char* driver;             /**< driver name and version, in the driver's words */
  const char* unsuitable_because; /**< empty when suitable */
  uint32_t index;                 /**< position in the device list */
  brontes_device_type type;
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  uint32_t api_version; /**< as Vulkan packs it */
  uint8_t uuid[16];
  int32_t suitable; /**< meets the baseline: Vulkan 1.2, a compute queue, timeline semaphores */
  uint32_t subgroup_size;
  uint32_t max_group_invocations;
  uint32_t max_shared_bytes;
  uint32_t max_group_count[3];
  int32_t mapped_memory;      /**< uploads and reads need no staging copy; known for an open device only */
  uint64_t max_storage_range; /**< bytes of the largest tensor */
  brontes_access_mode access; /**< known for an open device only */
  uint32_t reserved;          /**< 0 */
} brontes_device_info;

/** Counts since the device was opened. Exact. */
typedef struct brontes_device_stats {
  size_t struct_size;
  uint64_t pipelines_created;   /**< VkPipeline objects; at most one per kernel and specialization */
  uint64_t pipelines_requested; /**< pipeline lookups */
  uint64_t submits;             /**< command buffers submitted */
  uint64_t allocations;         /**< device memory blocks allocated so far */
  uint64_t live_buffers;        /**< VkBuffer objects alive now */
  uint64_t live_bytes;          /**< their bytes */
} brontes_device_stats;

/** The device memory of a device, now. */
typedef struct brontes_device_memory {
  size_t struct_size;
  uint64_t buffers;         /**< buffers that the device has, also those that only work in flight still uses */
  uint64_t used_bytes;      /**< their bytes */
  uint64_t cap_bytes;       /**< brontes_device_options.memory_cap */
  uint64_t blocks;          /**< memory objects they lie in, as the driver gave them */
  uint64_t block_bytes;     /**< their bytes, which are more than what is used */
  uint64_t heap_bytes;      /**< of the heap that most of it comes from */
  uint64_t heap_usage;      /**< how much of that heap is in use */
  uint64_t heap_budget;     /**< how much of it may be */
  uint64_t budget_reported; /**< 1: usage and budget are the driver's, of the whole process; 0: an estimate */
} brontes_device_memory;

/** Device memory that a batch or a program takes to run, besides the buffers it imports. */
typedef struct brontes_memory_needs {
  size_t struct_size;
  uint64_t device_bytes;   /**< uploads, results and temporaries */
  uint64_t upload_bytes;   /**< staging towards the device; 0 where device memory is mapped */
  uint64_t readback_bytes; /**< staging towards the host; 0 where device memory is mapped */
  uint64_t buffers;        /**< in so many pieces */
  uint64_t table_bytes;    /**< tables of addresses that the device keeps: at most so much is added */
} brontes_memory_needs;

/** Opens the best device, or the one the options choose; null for the defaults. Fails with no_loader, no_driver or
 *  no_device (the message lists what was found and why it was refused), unsupported, or whatever the driver reports.
 *
 *  After fork() the child must not use the parent's device: its calls fail with BRONTES_ERROR_DEVICE_LOST, and
 *  destroying its objects does nothing. */
BRONTES_API brontes_status brontes_device_open(const brontes_device_options* options, brontes_device** device,
                                               brontes_error* error);
BRONTES_API void brontes_device_destroy(brontes_device* device);

BRONTES_API brontes_status brontes_device_get_info(const brontes_device* device, brontes_device_info* info,
                                                   brontes_error* error);
BRONTES_API brontes_status brontes_device_get_stats(const brontes_device* device, brontes_device_stats* stats,
                                                    brontes_error* error);
/** Zeros in a forked process. */
BRONTES_API brontes_status brontes_device_get_memory(const brontes_device* device, brontes_device_memory* memory,
                                                     brontes_error* error);

/** Every device the Vulkan loader knows, suitable or not, in the loader's order. */
BRONTES_API brontes_status brontes_device_list_create(brontes_device_list** list, brontes_error* error);
BRONTES_API void brontes_device_list_destroy(brontes_device_list* list);
/** 0 for null. */
BRONTES_API size_t brontes_device_list_count(const brontes_device_list* list);
BRONTES_API brontes_status brontes_device_list_get_info(const brontes_device_list* list, size_t index,
                                                        brontes_device_info* info, brontes_error* error);

/** Whether the file of compiled pipelines was used when the device was opened. */
typedef int32_t brontes_pipeline_cache_state;
enum {
  BRONTES_PIPELINE_CACHE_OFF = 0,  /**< disabled, or there is no directory to keep it in */
  BRONTES_PIPELINE_CACHE_COLD = 1, /**< there was no file yet, or load_pipeline_cache had nothing */
  BRONTES_PIPELINE_CACHE_WARM = 2, /**< a valid file was loaded */
  BRONTES_PIPELINE_CACHE_REJECTED =
      3 /**< there was a file, but it was damaged, older or foreign, or must not be used */
};
/** "off", "warm" and so on. Never null. */
BRONTES_API const char* brontes_pipeline_cache_state_name(brontes_pipeline_cache_state state);

/** Any of the pointers may be null. `path` is empty when the cache is off; `note` says why it is off or rejected. Both
 *  are freed with brontes_free(). */
BRONTES_API brontes_status brontes_device_get_pipeline_cache(const brontes_device* device,
                                                             brontes_pipeline_cache_state* state,
                                                             uint64_t* bytes_loaded, char** path, char** note,
                                                             brontes_error* error);
/** Writes the pipeline cache now. BRONTES_ERROR_IO when the file cannot be written, BRONTES_ERROR_INVALID_ARGUMENT when
 *  the cache is off. */
BRONTES_API brontes_status brontes_device_save_pipeline_cache(const brontes_device* device, brontes_error* error);

/** The pipeline cache as bytes, for applications that keep such things themselves and set no_pipeline_cache. Freed with
 *  brontes_free(). Thread-safety: any thread. */
BRONTES_API brontes_status brontes_device_save_pipelines(const brontes_device* device, uint8_t** bytes, size_t* count,
                                                         brontes_error* error);
/** Adds such bytes to the cache of a device, usually right after it was opened. BRONTES_ERROR_INVALID_ARGUMENT, which
 *  says why, for bytes that are damaged, older, or of another device or driver: the device does without. The checksum
 *  finds damage and not forgery: load nothing that others can write. Thread-safety: any thread. */
BRONTES_API brontes_status brontes_device_load_pipelines(const brontes_device* device, const uint8_t* bytes,
                                                         size_t count, brontes_error* error);

/** Records from now on what the library does with the device and when, up to `max_spans` spans; 0: 2^20.
 *  BRONTES_ERROR_INVALID_ARGUMENT when that is being done already. */
BRONTES_API brontes_status brontes_device_start_trace(const brontes_device* device, size_t max_spans,
                                                      brontes_error* error);
/** Waits for work in flight and gives what was recorded, as JSON in the Trace Event Format. `trace` is freed with
 *  brontes_free(). BRONTES_ERROR_INVALID_ARGUMENT without brontes_device_start_trace(). */
BRONTES_API brontes_status brontes_device_stop_trace(const brontes_device* device, char** trace, brontes_error* error);

/** Where the measurements that a device uses come from. */
typedef int32_t brontes_tuning_state;
enum {
  BRONTES_TUNING_OFF = 0,      /**< disabled */
  BRONTES_TUNING_NONE = 1,     /**< nothing was measured yet: the shipped defaults */
  BRONTES_TUNING_LOADED = 2,   /**< from the file */
  BRONTES_TUNING_MEASURED = 3, /**< on this device, since it was opened */
  BRONTES_TUNING_REJECTED = 4  /**< there was a file, but it was damaged, older, foreign or refused */
};
/** "off", "loaded" and so on. Never null. */
BRONTES_API const char* brontes_tuning_state_name(brontes_tuning_state state);

/** Any of the pointers may be null. `shapes` products were measured, and something beats the default in `changed` of
 *  them. `path` and `note` are freed with brontes_free(). */
BRONTES_API brontes_status brontes_device_get_tuning(const brontes_device* device, brontes_tuning_state* state,
                                                     uint64_t* shapes, uint64_t* changed, char** path, char** note,
                                                     brontes_error* error);

/* --- Buffers ----------------------------------------------------------------------------------------------------- */

/* Device memory that you own and that outlives batches. A batch uses it through brontes_import_buffer() without any
 * upload and writes it through brontes_store(). Destroying a buffer that work in flight still uses is safe. */

/** A buffer of zeros, or of masks that are false. The type is f32, f16, i32 or mask. */
BRONTES_API brontes_status brontes_buffer_create(const brontes_device* device, const uint64_t* dims, size_t rank,
                                                 brontes_dtype dtype, brontes_buffer** buffer, brontes_error* error);
/** A buffer that holds `count` elements. With a rank of 0 it is 1-D. */
BRONTES_API brontes_status brontes_buffer_from(const brontes_device* device, const float* data, size_t count,
                                               const uint64_t* dims, size_t rank, brontes_buffer** buffer,
                                               brontes_error* error);
BRONTES_API brontes_status brontes_buffer_from_i32(const brontes_device* device, const int32_t* data, size_t count,
                                                   const uint64_t* dims, size_t rank, brontes_buffer** buffer,
                                                   brontes_error* error);
/** A buffer of f16: the nearest to `data`, ties to even; or `data` itself, the bits of f16. */
BRONTES_API brontes_status brontes_buffer_from_f16(const brontes_device* device, const float* data, size_t count,
                                                   const uint64_t* dims, size_t rank, brontes_buffer** buffer,
                                                   brontes_error* error);
BRONTES_API brontes_status brontes_buffer_from_f16_bits(const brontes_device* device, const uint16_t* data,
                                                        size_t count, const uint64_t* dims, size_t rank,
                                                        brontes_buffer** buffer, brontes_error* error);
BRONTES_API void brontes_buffer_destroy(brontes_buffer* buffer);

/** Writes up to BRONTES_MAX_RANK extents to `dims`, which may be null, and returns their number; 0 for null. */
BRONTES_API size_t brontes_buffer_shape(const brontes_buffer* buffer, uint64_t dims[BRONTES_MAX_RANK]);
/** -1 for null. */
BRONTES_API brontes_dtype brontes_buffer_dtype(const brontes_buffer* buffer);
BRONTES_API uint64_t brontes_buffer_size(const brontes_buffer* buffer);  /**< elements; 0 for null */
BRONTES_API uint64_t brontes_buffer_bytes(const brontes_buffer* buffer); /**< 0 for null */

/** Copies `count` elements into the buffer, starting at element `first`. Waits for work in flight that uses it; returns
 *  when `data` may be reused. shape_mismatch when it does not fit, type_mismatch when the buffer is of another type.
 *  Floats are rounded to the nearest f16 in a buffer of that. Masks are written by brontes_store() only. */
BRONTES_API brontes_status brontes_buffer_write(brontes_buffer* buffer, const float* data, size_t count, uint64_t first,
                                                brontes_error* error);
BRONTES_API brontes_status brontes_buffer_write_i32(brontes_buffer* buffer, const int32_t* data, size_t count,
                                                    uint64_t first, brontes_error* error);
BRONTES_API brontes_status brontes_buffer_write_f16_bits(brontes_buffer* buffer, const uint16_t* data, size_t count,
                                                         uint64_t first, brontes_error* error);
/** Copies `count` elements from `first` on: f32 and f16 as floats, i32 and masks (0 and 1) as integers, f16 also as its
 *  bits. Waits for work in flight that uses the buffer. */
BRONTES_API brontes_status brontes_buffer_read(const brontes_buffer* buffer, float* out, size_t count, uint64_t first,
                                               brontes_error* error);
BRONTES_API brontes_status brontes_buffer_read_i32(const brontes_buffer* buffer, int32_t* out, size_t count,
                                                   uint64_t first, brontes_error* error);
BRONTES_API brontes_status brontes_buffer_read_f16_bits(const brontes_buffer* buffer, uint16_t* out, size_t count,
                                                        uint64_t first, brontes_error* error);

/* --- Weights ----------------------------------------------------------------------------------------------------- */

/* A matrix W[rows, columns] on the device, stored as any type but i32 and mask, for y = x W^T. Products read it as it
 * is stored and add up in f32. One that is too large for a single binding is kept in parts, which callers do not see.
 */

/** Converts f32 data, row-major, of `count` elements. shape_mismatch when data and sizes differ, or when a row of q8_0
 *  or q4_0 is not whole blocks of 32; invalid_argument, naming the element, for what cannot be quantised. */
BRONTES_API brontes_status brontes_weight_from(const brontes_device* device, const float* data, size_t count,
                                               uint64_t rows, uint64_t columns, brontes_dtype dtype,
                                               brontes_weight** weight, brontes_error* error);
/** The same from the transposed matrix B[columns, rows]. */
BRONTES_API brontes_status brontes_weight_from_transposed(const brontes_device* device, const float* data, size_t count,
                                                          uint64_t rows, uint64_t columns, brontes_dtype dtype,
                                                          brontes_weight** weight, brontes_error* error);
/** Takes data as GGUF files store it: rows back to back, brontes_dtype_row_bytes() each. Nothing is rounded. */
BRONTES_API brontes_status brontes_weight_from_stored(const brontes_device* device, const void* data, size_t bytes,
                                                      uint64_t rows, uint64_t columns, brontes_dtype dtype,
                                                      brontes_weight** weight, brontes_error* error);
BRONTES_API void brontes_weight_destroy(brontes_weight* weight);

BRONTES_API uint64_t brontes_weight_rows(const brontes_weight* weight);       /**< 0 for null */
BRONTES_API uint64_t brontes_weight_columns(const brontes_weight* weight);    /**< 0 for null */
BRONTES_API brontes_dtype brontes_weight_dtype(const brontes_weight* weight); /**< -1 for null */
BRONTES_API uint64_t brontes_weight_bytes(const brontes_weight* weight);      /**< of device memory, with padding */
BRONTES_API size_t brontes_weight_parts(const brontes_weight* weight);        /**< 0 for null */

/* --- Kernels of your own ----------------------------------------------------------------------------------------- */

typedef int32_t brontes_constant_kind;
enum { BRONTES_CONSTANT_BOOLEAN = 0, BRONTES_CONSTANT_INTEGER = 1, BRONTES_CONSTANT_FLOATING = 2 };

/** A value for a specialization constant. Its kind must be the constant's. This struct does not grow. */
typedef struct brontes_constant {
  uint32_t id;
  brontes_constant_kind kind;
  union {
    int32_t boolean;
    int32_t integer;
    uint32_t bits; /**< of an integer without sign, and of a float */
    float floating;
  } value;
} brontes_constant;

typedef struct brontes_kernel_options {
  size_t struct_size;
  /** What dumps and messages call the kernel: up to 64 letters, digits and any of "_-.:". Null or empty: the name of
   *  the entry point, or "kernel" if that is "main". */
  const char* name;
  /** Null or empty: the module's only compute entry point. */
  const char* entry_point;
  /** Those not named keep the defaults of the module. */
  const brontes_constant* constants;
  size_t constant_count;
  /** Binding numbers of buffers whose old contents count although the kernel only stores to them. */
  const uint32_t* updates;
  size_t update_count;
} brontes_kernel_options;

typedef int32_t brontes_kernel_access;
enum { BRONTES_KERNEL_READ = 0, BRONTES_KERNEL_WRITE = 1, BRONTES_KERNEL_READ_WRITE = 2 };

/** A storage buffer of descriptor set 0. The name belongs to the kernel. */
typedef struct brontes_kernel_binding {
  size_t struct_size;
  const char* name; /**< from the module's debug information; empty if it has none */
  uint32_t binding;
  brontes_kernel_access access;
} brontes_kernel_binding;

/** What was read from a module. The strings belong to the kernel. */
typedef struct brontes_kernel_info {
  size_t struct_size;
  const char* name;
  const char* entry_point;
  size_t binding_count;
  size_t input_count;         /**< bindings that are read */
  size_t output_count;        /**< bindings that are written */
  uint32_t workgroup_size[3]; /**< after specialization */
  uint32_t push_bytes;
  uint64_t shared_bytes; /**< of workgroup memory */
  int32_t uses_subgroups;
  uint32_t reserved; /**< 0 */
} brontes_kernel_info;

/** A compute shader for brontes_call(), from SPIR-V, which is copied. What it needs is read from the module: bindings
 *  and how they are accessed, push constants, specialization constants, workgroup size. What it may be, and what is
 *  refused with which error, is in brontes/kernel.hpp and docs/custom-kernels.md. Batches and programs keep what they
 *  need of a kernel, so it may be destroyed at any time. */
BRONTES_API brontes_status brontes_kernel_from_spirv(const brontes_device* device, const uint32_t* words,
                                                     size_t word_count, const brontes_kernel_options* options,
                                                     brontes_kernel** kernel, brontes_error* error);
BRONTES_API void brontes_kernel_destroy(brontes_kernel* kernel);

BRONTES_API brontes_status brontes_kernel_get_info(const brontes_kernel* kernel, brontes_kernel_info* info,
                                                   brontes_error* error);
/** Bindings in ascending order, `index` below binding_count. */
BRONTES_API brontes_status brontes_kernel_get_binding(const brontes_kernel* kernel, size_t index,
                                                      brontes_kernel_binding* binding, brontes_error* error);
/** As many workgroups as it takes to have an invocation for each of x * y * z elements. */
BRONTES_API brontes_status brontes_kernel_groups_for(const brontes_kernel* kernel, uint64_t x, uint64_t y, uint64_t z,
                                                     uint32_t groups[3], brontes_error* error);

/* --- Batches ----------------------------------------------------------------------------------------------------- */

/** Memory layout of the second operand of a product, always row-major. */
typedef int32_t brontes_layout;
enum {
  BRONTES_LAYOUT_KN = 0, /**< B[K, N]: C = A x B */
  BRONTES_LAYOUT_NK = 1  /**< W[N, K]: C = A x W^T, the way model files store a linear layer */
};
BRONTES_API const char* brontes_layout_name(brontes_layout layout); /**< never null */

/** The kernels to choose from. Each computes the same product for every shape. */
typedef int32_t brontes_matmul_kernel;
enum {
  BRONTES_MATMUL_AUTOMATIC = 0, /**< the selector decides */
  BRONTES_MATMUL_NAIVE = 1,     /**< one invocation per element; the reference */
  BRONTES_MATMUL_GEMV = 2,      /**< up to eight rows */
  BRONTES_MATMUL_TILED = 3,     /**< shared-memory tiles with register blocking */
  BRONTES_MATMUL_SUBGROUP = 4,  /**< a subgroup per tile, no shared memory: for CPU drivers */
  BRONTES_MATMUL_PANEL = 5,     /**< likewise, for more rows */
  BRONTES_MATMUL_COOPMAT = 6    /**< matrix units; takes BRONTES_PRECISION_F16 */
};
BRONTES_API const char* brontes_matmul_kernel_name(brontes_matmul_kernel kernel); /**< never null */

/** How closely a product is computed. Sums are f32 in any case. */
typedef int32_t brontes_precision;
enum {
  BRONTES_PRECISION_AUTOMATIC = 0, /**< what the batch's or the cache's options say; there it means f32 */
  BRONTES_PRECISION_F32 = 1,       /**< operands are taken as they are */
  /** Operands may be rounded to f16, which the matrix units of GPUs take: an element x counts as one that differs by up
   *  to 2^-11 * |x|, or is 0 if |x| is below 2^-14, and as infinite from 65520 on. */
  BRONTES_PRECISION_F16 = 2
};

typedef struct brontes_batch_options {
  size_t struct_size;
  int32_t keep_all;             /**< every value can be read, for debugging: costs memory and time */
  int32_t keep_marked_only;     /**< only what is marked with brontes_keep() can be read */
  int32_t no_fuse;              /**< every op is a dispatch of its own */
  int32_t no_memory_reuse;      /**< temporaries do not share memory */
  uint64_t work_per_submit;     /**< splits a run into command buffers of at most this many multiply-adds or elements */
  brontes_matmul_kernel matmul; /**< forces one kernel for every product that does not choose its own */
  int32_t batch_invariant;      /**< row i of a product has the same bits whatever the number of rows */
  /** Splits a run into command buffers, so that none is estimated to take longer than this on the device. 0: 250 on
   *  GPUs, and no bound with CPU drivers, which have no watchdog. BRONTES_UNLIMITED: one command buffer. */
  uint32_t milliseconds_per_submit;
  brontes_precision precision; /**< of every product that does not say its own */
} brontes_batch_options;

/** For brontes_batch_options::milliseconds_per_submit. */
#define BRONTES_UNLIMITED UINT32_MAX

/** What a batch recorded and what it cost. Counts are exact. */
typedef struct brontes_batch_stats {
  size_t struct_size;
  uint64_t operations;                /**< ops recorded */
  uint64_t values;                    /**< tensors: uploads, imports and results */
  uint64_t dropped_operations;        /**< ops that did not run because nothing could read them */
  uint64_t fused_operations;          /**< ops that ran inside the dispatch of another */
  uint64_t dispatches;                /**< vkCmdDispatch */
  uint64_t barriers;                  /**< barriers between dependent dispatches */
  uint64_t boundary_barriers;         /**< barriers towards earlier work, transfers and the host */
  uint64_t submits;                   /**< command buffers submitted */
  uint64_t transfers_up;              /**< host to device */
  uint64_t transfers_down;            /**< device to host */
  uint64_t bytes_up;                  /**< bytes of uploaded elements */
  uint64_t bytes_down;                /**< bytes of readable elements */
  uint64_t copy_commands;             /**< vkCmdCopyBuffer; 0 where device memory is mapped */
  uint64_t pipelines_created;         /**< pipelines this batch was the first to need */
  uint64_t allocations;               /**< device memory blocks allocated */
  uint64_t arena_bytes;               /**< device memory of uploads, results and temporaries */
  uint64_t arena_bytes_without_reuse; /**< what it would be if no temporaries shared memory */
  uint64_t pipelines_used;            /**< distinct pipelines that a run binds */
  uint64_t spirv_bytes;               /**< SPIR-V of these, as the driver was given it */
  uint64_t fused_programs;            /**< those of them that run several elementwise ops at once */
} brontes_batch_stats;

/** Records tensor ops, runs them in one command buffer with one submit, and hands back results. Its meaning is that of
 *  brontes::Batch:
 *
 *  - What can be read after brontes_batch_execute(): every value that no other op consumed, and every value marked with
 *    brontes_keep() before. Anything else may not exist any more (BRONTES_ERROR_NOT_KEPT).
 *  - After executing, further ops may be recorded on readable values, uploads and imports; the next call uploads and
 *    runs only what is new.
 *  - Elementwise ops on several tensors broadcast as in numpy. Shapes with a zero extent are fine except in the max and
 *    min reductions.
 *  - NaN propagates through every op.
 */
BRONTES_API brontes_status brontes_batch_create(const brontes_device* device, const brontes_batch_options* options,
                                                brontes_batch** batch, brontes_error* error);
BRONTES_API void brontes_batch_destroy(brontes_batch* batch);

/** Plans and encodes what was recorded since the last call, submits it once and waits. Reports the first recording
 *  error, if there is one, and then runs nothing. After a failure to plan, encode or submit the batch is as it was. */
BRONTES_API brontes_status brontes_batch_execute(brontes_batch* batch, brontes_error* error);
/** The same without the wait. `submission` may be null: reading waits, too. */
BRONTES_API brontes_status brontes_batch_submit(brontes_batch* batch, brontes_submission** submission,
                                                brontes_error* error);
/** What brontes_batch_execute() would run, planned and encoded for many runs. The batch stays as it is. */
BRONTES_API brontes_status brontes_batch_compile(brontes_batch* batch, brontes_program** program, brontes_error* error);

/** How many pipelines are ready and how many there are in all. 0 stops: a pipeline that is being compiled is finished.
 */
typedef int32_t (*brontes_prepare_callback)(void* user_data, size_t ready, size_t total);

typedef struct brontes_prepare_options {
  size_t struct_size;
  brontes_prepare_callback on_progress; /**< before the first pipeline and after each; null: none */
  void* user_data;
} brontes_prepare_options;

typedef struct brontes_prepared {
  size_t struct_size;
  uint64_t total;   /**< distinct pipelines that the batch needs */
  uint64_t ready;   /**< of these, the ones that are there now */
  uint64_t created; /**< of these, the ones that this call made */
} brontes_prepared;

/** Creates the pipelines that running what is recorded would need, and does nothing else. After a complete one runs
 *  create none. Stopped or failed, what was created stays. `prepared` may be null. */
BRONTES_API brontes_status brontes_batch_prepare(const brontes_batch* batch, const brontes_prepare_options* options,
                                                 brontes_prepared* prepared, brontes_error* error);

/** The elements of a readable f32 or f16 value. `count` must be its size. Errors: not_executed, not_kept,
 * type_mismatch, shape_mismatch, null_data, and those of bad tensors. */
BRONTES_API brontes_status brontes_batch_read(const brontes_batch* batch, brontes_tensor x, float* out, size_t count,
                                              brontes_error* error);
/** The same for i32 and masks, which give 0 and 1. */
BRONTES_API brontes_status brontes_batch_read_i32(const brontes_batch* batch, brontes_tensor x, int32_t* out,
                                                  size_t count, brontes_error* error);
/** The bits of f16. */
BRONTES_API brontes_status brontes_batch_read_f16_bits(const brontes_batch* batch, brontes_tensor x, uint16_t* out,
                                                       size_t count, brontes_error* error);

/** Discards everything recorded and every result; existing tensors become stale. Errors are cleared, counts start at
 *  zero. Keeps memory for a similar batch. */
BRONTES_API brontes_status brontes_batch_reset(brontes_batch* batch, brontes_error* error);

/** The first recording error, if any: it is both returned and written. It stays until it is cleared or the batch is
 *  reset. */
BRONTES_API brontes_status brontes_batch_error(const brontes_batch* batch, brontes_error* error);
/** Clears the error; returns and writes what it was. What was recorded stays. */
BRONTES_API brontes_status brontes_batch_clear_error(brontes_batch* batch, brontes_error* error);

BRONTES_API size_t brontes_batch_num_operations(const brontes_batch* batch); /**< recorded since creation or reset */
BRONTES_API size_t brontes_batch_num_buffers(const brontes_batch* batch); /**< values: uploads, imports and results */
BRONTES_API brontes_status brontes_batch_get_stats(const brontes_batch* batch, brontes_batch_stats* stats,
                                                   brontes_error* error);
/** The device memory that brontes_batch_compile() would allocate now, to the byte. Plans what is recorded, and
 *  allocates nothing. Fails as brontes_batch_dump() does. */
BRONTES_API brontes_status brontes_batch_predict_memory(const brontes_batch* batch, brontes_memory_needs* needs,
                                                        brontes_error* error);

typedef int32_t brontes_dump_format;
enum {
  BRONTES_DUMP_TEXT = 0, /**< one line per op, or per dispatch and barrier */
  BRONTES_DUMP_DOT = 1,  /**< Graphviz */
  BRONTES_DUMP_JSON = 2
};
typedef int32_t brontes_dump_stage;
enum {
  BRONTES_DUMP_RECORDED = 0, /**< what was asked */
  BRONTES_DUMP_PLANNED = 1   /**< what will run: dispatches with the ops they fuse, barriers, memory */
};
/** What brontes_batch_execute() would run now, or what was recorded since the last one. `text` is freed with
 *  brontes_free(). */
BRONTES_API brontes_status brontes_batch_dump(const brontes_batch* batch, brontes_dump_format format,
                                              brontes_dump_stage stage, char** text, brontes_error* error);

/** Writes up to BRONTES_MAX_RANK extents to `dims`, which may be null, and returns their number; 0 for a bad tensor. */
BRONTES_API size_t brontes_tensor_shape(const brontes_batch* batch, brontes_tensor x, uint64_t dims[BRONTES_MAX_RANK]);
/** -1 for a bad tensor. */
BRONTES_API brontes_dtype brontes_tensor_dtype(const brontes_batch* batch, brontes_tensor x);
/** Elements; 0 for a bad tensor. */
BRONTES_API uint64_t brontes_tensor_size(const brontes_batch* batch, brontes_tensor x);

/* --- Recording: inputs ------------------------------------------------------------------------------------------- */

/* All that follows, up to the programs, records into a batch. What returns a tensor returns BRONTES_NO_TENSOR when it
 * failed; what returns a status returns that of the batch, BRONTES_OK or its first error. A null batch records nothing.
 * A shape is a pointer to extents, outermost first, and their number; a rank of 0 stands for "no shape given". */

/** Copies host data into the batch; it may be changed as soon as the call returns. Without a shape the tensor is 1-D.
 *  Errors: null_data; shape_mismatch when data and shape differ in size; empty_input for neither data nor shape. */
BRONTES_API brontes_tensor brontes_upload(brontes_batch* batch, const float* data, size_t count, const uint64_t* dims,
                                          size_t rank);
BRONTES_API brontes_tensor brontes_upload_i32(brontes_batch* batch, const int32_t* data, size_t count,
                                              const uint64_t* dims, size_t rank);
/** f16: the nearest to `data`, ties to even, with infinity from 65520 on; or `data` itself, the bits of f16. */
BRONTES_API brontes_tensor brontes_upload_f16(brontes_batch* batch, const float* data, size_t count,
                                              const uint64_t* dims, size_t rank);
BRONTES_API brontes_tensor brontes_upload_f16_bits(brontes_batch* batch, const uint16_t* data, size_t count,
                                                   const uint64_t* dims, size_t rank);
/** A window on a resident buffer of the same device, without any transfer. The batch keeps the memory alive. */
BRONTES_API brontes_tensor brontes_import_buffer(brontes_batch* batch, const brontes_buffer* buffer);
/** A slice of a resident buffer, of the elements that it has at this point of the recording. */
BRONTES_API brontes_tensor brontes_import_buffer_slice(brontes_batch* batch, const brontes_buffer* buffer,
                                                       const brontes_range* ranges, size_t range_count);
/** A weight as the second operand of brontes_linear() or of brontes_matmul() with BRONTES_LAYOUT_NK. */
BRONTES_API brontes_tensor brontes_import_weight(brontes_batch* batch, const brontes_weight* weight);
/** A tensor with every element set to `value`. */
BRONTES_API brontes_tensor brontes_fill(brontes_batch* batch, float value, const uint64_t* dims, size_t rank);
BRONTES_API brontes_tensor brontes_fill_i32(brontes_batch* batch, int32_t value, const uint64_t* dims, size_t rank);

/* --- One operand of any shape; the result has its shape ---------------------------------------------------------- */

BRONTES_API brontes_tensor brontes_relu(brontes_batch* batch, brontes_tensor x);                 /**< x < 0 ? 0 : x */
BRONTES_API brontes_tensor brontes_scale(brontes_batch* batch, brontes_tensor x, float factor);  /**< x * factor */
BRONTES_API brontes_tensor brontes_offset(brontes_batch* batch, brontes_tensor x, float amount); /**< x + amount */
BRONTES_API brontes_tensor brontes_neg(brontes_batch* batch, brontes_tensor x);                  /**< -x; also of i32 */
BRONTES_API brontes_tensor brontes_abs(brontes_batch* batch, brontes_tensor x);     /**< |x|; also of i32 */
BRONTES_API brontes_tensor brontes_exp(brontes_batch* batch, brontes_tensor x);     /**< e^x; +Inf past 88.7 */
BRONTES_API brontes_tensor brontes_log(brontes_batch* batch, brontes_tensor x);     /**< -Inf at 0, NaN below */
BRONTES_API brontes_tensor brontes_sqrt(brontes_batch* batch, brontes_tensor x);    /**< NaN below 0 */
BRONTES_API brontes_tensor brontes_sigmoid(brontes_batch* batch, brontes_tensor x); /**< 1 / (1 + e^-x) */
BRONTES_API brontes_tensor brontes_tanh(brontes_batch* batch, brontes_tensor x);
BRONTES_API brontes_tensor brontes_swish(brontes_batch* batch, brontes_tensor x);     /**< x * sigmoid(x), SiLU */
BRONTES_API brontes_tensor brontes_gelu(brontes_batch* batch, brontes_tensor x);      /**< the exact form, by erf */
BRONTES_API brontes_tensor brontes_gelu_tanh(brontes_batch* batch, brontes_tensor x); /**< the tanh approximation */
/** invalid_argument unless low <= high */
BRONTES_API brontes_tensor brontes_clamp(brontes_batch* batch, brontes_tensor x, float low, float high);
BRONTES_API brontes_tensor brontes_copy(brontes_batch* batch, brontes_tensor x); /**< in memory of its own; any type */
BRONTES_API brontes_tensor brontes_square(brontes_batch* batch, brontes_tensor x);     /**< x * x */
BRONTES_API brontes_tensor brontes_reciprocal(brontes_batch* batch, brontes_tensor x); /**< 1 / x */
BRONTES_API brontes_tensor brontes_rsqrt(brontes_batch* batch, brontes_tensor x);      /**< 1 / sqrt(x); +Inf at 0 */
BRONTES_API brontes_tensor brontes_sign(brontes_batch* batch, brontes_tensor x);       /**< -1, 0 or 1 */
BRONTES_API brontes_tensor brontes_floor(brontes_batch* batch, brontes_tensor x);
BRONTES_API brontes_tensor brontes_ceil(brontes_batch* batch, brontes_tensor x);
BRONTES_API brontes_tensor brontes_round(brontes_batch* batch, brontes_tensor x); /**< halves to the even number */
BRONTES_API brontes_tensor brontes_sin(brontes_batch* batch, brontes_tensor x);
BRONTES_API brontes_tensor brontes_cos(brontes_batch* batch, brontes_tensor x);
BRONTES_API brontes_tensor brontes_tan(brontes_batch* batch, brontes_tensor x);
BRONTES_API brontes_tensor brontes_erf(brontes_batch* batch, brontes_tensor x); /**< the error function */
/** x < 0 ? slope * x : x */
BRONTES_API brontes_tensor brontes_leaky_relu(brontes_batch* batch, brontes_tensor x, float slope);
/** x < 0 ? scale * (e^x - 1) : x */
BRONTES_API brontes_tensor brontes_elu(brontes_batch* batch, brontes_tensor x, float scale);
BRONTES_API brontes_tensor brontes_softplus(brontes_batch* batch, brontes_tensor x);     /**< log(1 + e^x) */
BRONTES_API brontes_tensor brontes_hard_sigmoid(brontes_batch* batch, brontes_tensor x); /**< x / 6 + 1/2 in [0, 1] */
BRONTES_API brontes_tensor brontes_hard_swish(brontes_batch* batch, brontes_tensor x);   /**< x * hard_sigmoid(x) */

/* --- Two operands, broadcast: both f32 or, but for pow, both i32 ------------------------------------------------- */

BRONTES_API brontes_tensor brontes_add(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
BRONTES_API brontes_tensor brontes_sub(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
BRONTES_API brontes_tensor brontes_mul(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
/** x / y. Of i32 it is rounded down: -7 / 2 is -4, and 0 where y is 0. */
BRONTES_API brontes_tensor brontes_div(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
/** x - floor(x / y) * y, with the sign of y, as in Python. */
BRONTES_API brontes_tensor brontes_mod(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
BRONTES_API brontes_tensor brontes_min(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
BRONTES_API brontes_tensor brontes_max(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
/** x^y. NaN for x < 0 unless y is whole. */
BRONTES_API brontes_tensor brontes_pow(brontes_batch* batch, brontes_tensor x, brontes_tensor y);

/* --- Comparisons of two f32 or two i32, and masks; broadcast ----------------------------------------------------- */

BRONTES_API brontes_tensor brontes_eq(brontes_batch* batch, brontes_tensor x, brontes_tensor y); /**< x == y */
BRONTES_API brontes_tensor brontes_ne(brontes_batch* batch, brontes_tensor x, brontes_tensor y); /**< x != y */
BRONTES_API brontes_tensor brontes_lt(brontes_batch* batch, brontes_tensor x, brontes_tensor y); /**< x < y */
BRONTES_API brontes_tensor brontes_le(brontes_batch* batch, brontes_tensor x, brontes_tensor y); /**< x <= y */
BRONTES_API brontes_tensor brontes_gt(brontes_batch* batch, brontes_tensor x, brontes_tensor y); /**< x > y */
BRONTES_API brontes_tensor brontes_ge(brontes_batch* batch, brontes_tensor x, brontes_tensor y); /**< x >= y */
BRONTES_API brontes_tensor brontes_logical_and(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
BRONTES_API brontes_tensor brontes_logical_or(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
BRONTES_API brontes_tensor brontes_logical_xor(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
BRONTES_API brontes_tensor brontes_logical_not(brontes_batch* batch, brontes_tensor x);
/** x where the mask is true, y elsewhere, bit by bit. x and y are of any type, both of the same, or one f16 and the
 * other f32, which gives f32. */
BRONTES_API brontes_tensor brontes_where(brontes_batch* batch, brontes_tensor mask, brontes_tensor x, brontes_tensor y);
/** The elements of x as f32, f16, i32 or mask. From f32 to i32 they are cut off towards 0 and saturate; NaN gives 0. To
 *  f16 they are rounded to the nearest, ties to even, with infinity from 65520 on. */
BRONTES_API brontes_tensor brontes_cast(brontes_batch* batch, brontes_tensor x, brontes_dtype dtype);

/* --- Views: the same elements in another shape, which costs nothing ---------------------------------------------- */

BRONTES_API brontes_tensor brontes_reshape(brontes_batch* batch, brontes_tensor x, const uint64_t* dims, size_t rank);
BRONTES_API brontes_tensor brontes_flatten(brontes_batch* batch, brontes_tensor x); /**< 1-D */
BRONTES_API brontes_tensor brontes_squeeze(brontes_batch* batch, brontes_tensor x); /**< without dims of extent 1 */
/** With a dim of extent 1 before `axis`; negative ones count from the end. */
BRONTES_API brontes_tensor brontes_unsqueeze(brontes_batch* batch, brontes_tensor x, int64_t axis);

/* --- Some of the elements, or the same ones in another order ----------------------------------------------------- */

/** x[begin:end:step, ...] as in numpy, with a range for each of the first dims; the others are taken whole. */
BRONTES_API brontes_tensor brontes_slice(brontes_batch* batch, brontes_tensor x, const brontes_range* ranges,
                                         size_t range_count);
/** The same along one axis. */
BRONTES_API brontes_tensor brontes_slice_axis(brontes_batch* batch, brontes_tensor x, int64_t axis, int64_t begin,
                                              int64_t end, int64_t step);
/** Equal parts along an axis, in order, into `out`, which has room for `parts`; BRONTES_NO_TENSOR after an error. */
BRONTES_API brontes_status brontes_split(brontes_batch* batch, brontes_tensor x, size_t parts, int64_t axis,
                                         brontes_tensor* out);
/** Dim i of the result is dim axes[i] of x. */
BRONTES_API brontes_tensor brontes_permute(brontes_batch* batch, brontes_tensor x, const int64_t* axes,
                                           size_t axis_count);
BRONTES_API brontes_tensor brontes_transpose(brontes_batch* batch, brontes_tensor x); /**< of the last two dims */
/** Repeats x along new dims in front and along dims of extent 1. */
BRONTES_API brontes_tensor brontes_expand(brontes_batch* batch, brontes_tensor x, const uint64_t* dims, size_t rank);
/** Tensors of one type side by side along an axis. */
BRONTES_API brontes_tensor brontes_concat(brontes_batch* batch, const brontes_tensor* parts, size_t part_count,
                                          int64_t axis);

/* --- Reductions -------------------------------------------------------------------------------------------------- */

/* Axes are counted from 0, or from the end with -1 for the last; none at all (NULL, 0) means all of them. The reduced
 * dims are left out of the result's shape, or stay with extent 1 if keep_dims is set; where no dim is left the shape is
 * {1}. What no elements give is stated. */

/** 0 for no elements */
BRONTES_API brontes_tensor brontes_sum(brontes_batch* batch, brontes_tensor x, const int64_t* axes, size_t axis_count,
                                       int keep_dims);
/** NaN for no elements */
BRONTES_API brontes_tensor brontes_mean(brontes_batch* batch, brontes_tensor x, const int64_t* axes, size_t axis_count,
                                        int keep_dims);
/** 1 for no elements */
BRONTES_API brontes_tensor brontes_prod(brontes_batch* batch, brontes_tensor x, const int64_t* axes, size_t axis_count,
                                        int keep_dims);
/** The largest elements; empty_input for none. brontes_max() takes two tensors. */
BRONTES_API brontes_tensor brontes_reduce_max(brontes_batch* batch, brontes_tensor x, const int64_t* axes,
                                              size_t axis_count, int keep_dims);
/** The smallest elements; empty_input for none. */
BRONTES_API brontes_tensor brontes_reduce_min(brontes_batch* batch, brontes_tensor x, const int64_t* axes,
                                              size_t axis_count, int keep_dims);
/** 0 for no elements */
BRONTES_API brontes_tensor brontes_sum_of_squares(brontes_batch* batch, brontes_tensor x, const int64_t* axes,
                                                  size_t axis_count, int keep_dims);
/** Sum of |x|; 0 for no elements */
BRONTES_API brontes_tensor brontes_l1_norm(brontes_batch* batch, brontes_tensor x, const int64_t* axes,
                                           size_t axis_count, int keep_dims);
/** sqrt of the sum of squares; 0 for no elements */
BRONTES_API brontes_tensor brontes_l2_norm(brontes_batch* batch, brontes_tensor x, const int64_t* axes,
                                           size_t axis_count, int keep_dims);
/** log of the sum of e^x, without overflow on the way; -Inf for no elements */
BRONTES_API brontes_tensor brontes_logsumexp(brontes_batch* batch, brontes_tensor x, const int64_t* axes,
                                             size_t axis_count, int keep_dims);
/** Whether any element of a mask is true; false for no elements */
BRONTES_API brontes_tensor brontes_any(brontes_batch* batch, brontes_tensor x, const int64_t* axes, size_t axis_count,
                                       int keep_dims);
/** Whether all elements of a mask are true; true for no elements */
BRONTES_API brontes_tensor brontes_all(brontes_batch* batch, brontes_tensor x, const int64_t* axes, size_t axis_count,
                                       int keep_dims);
/** Sum of products, of shape {1}; the sizes must agree, the shapes need not. */
BRONTES_API brontes_tensor brontes_dot(brontes_batch* batch, brontes_tensor x, brontes_tensor y);
/** The index of the largest or smallest element along the axis, as i32: the first of equal ones. */
BRONTES_API brontes_tensor brontes_argmax(brontes_batch* batch, brontes_tensor x, int64_t axis, int keep_dim);
BRONTES_API brontes_tensor brontes_argmin(brontes_batch* batch, brontes_tensor x, int64_t axis, int keep_dim);

/* --- Rows by index ----------------------------------------------------------------------------------------------- */

/** The rows of the table that an i32 index of any shape names: table [V, D...] and index S give [S..., D...]. Negative
 *  ones count from the end; a row that is not there consists of NaN, of the lowest i32, of false. */
BRONTES_API brontes_tensor brontes_gather(brontes_batch* batch, brontes_tensor table, brontes_tensor index);
/** x with other rows in place of those that the index names. The last of several rows for one place counts. */
BRONTES_API brontes_tensor brontes_update_rows(brontes_batch* batch, brontes_tensor x, brontes_tensor index,
                                               brontes_tensor rows);

/* --- Along one axis; the result has the shape of x. -1 is the last dim ------------------------------------------- */

BRONTES_API brontes_tensor brontes_softmax(brontes_batch* batch, brontes_tensor x, int64_t axis);
BRONTES_API brontes_tensor brontes_log_softmax(brontes_batch* batch, brontes_tensor x, int64_t axis);
/** (x - mean) / sqrt(variance + epsilon) over the last dim, times the weight and plus the bias, both of the shape of
 *  the last dim. epsilon is often 1e-5f. */
BRONTES_API brontes_tensor brontes_layer_norm(brontes_batch* batch, brontes_tensor x, brontes_tensor weight,
                                              brontes_tensor bias, float epsilon);
/** The same without weight and bias. */
BRONTES_API brontes_tensor brontes_layer_norm_plain(brontes_batch* batch, brontes_tensor x, float epsilon);
/** x / sqrt(mean of x * x + epsilon) over the last dim, times the weight. */
BRONTES_API brontes_tensor brontes_rms_norm(brontes_batch* batch, brontes_tensor x, brontes_tensor weight,
                                            float epsilon);
/** The same without weight. */
BRONTES_API brontes_tensor brontes_rms_norm_plain(brontes_batch* batch, brontes_tensor x, float epsilon);
/** Each element plus all before it along the axis. */
BRONTES_API brontes_tensor brontes_cumsum(brontes_batch* batch, brontes_tensor x, int64_t axis);

/* --- Matrix product ---------------------------------------------------------------------------------------------- */

typedef struct brontes_matmul_options {
  size_t struct_size;
  brontes_layout layout;
  /** C = alpha * (A x B) with has_alpha, otherwise A x B. An alpha that is not 0 without has_alpha is
   *  BRONTES_ERROR_INVALID_ARGUMENT, so that it cannot be lost. */
  int32_t has_alpha;
  float alpha;
  brontes_matmul_kernel kernel; /**< forces a kernel, for tests and benchmarks */
  uint32_t variant;             /**< which tile sizes of a forced kernel, from 1; 0 picks them by the shape */
  brontes_precision precision;
} brontes_matmul_options;

/** [..., M, K] x [..., K, N] -> [..., M, N], sizes from the shapes; leading dims broadcast. A 1-D operand is a row
 *  (left) or a column (right). With BRONTES_LAYOUT_NK the second operand is [N, K]. */
BRONTES_API brontes_tensor brontes_matmul(brontes_batch* batch, brontes_tensor a, brontes_tensor b,
                                          const brontes_matmul_options* options);
/** The same on flat data: a holds m*k elements, b holds k*n, whatever their shapes. */
BRONTES_API brontes_tensor brontes_matmul_flat(brontes_batch* batch, brontes_tensor a, brontes_tensor b, uint64_t m,
                                               uint64_t k, uint64_t n, const brontes_matmul_options* options);
/** x W^T: x[..., M, K], w[N, K]. */
BRONTES_API brontes_tensor brontes_linear(brontes_batch* batch, brontes_tensor x, brontes_tensor w);
/** x W^T + bias, with bias[N]. */
BRONTES_API brontes_tensor brontes_linear_bias(brontes_batch* batch, brontes_tensor x, brontes_tensor w,
                                               brontes_tensor bias);

/** What the selector chose for a product. */
typedef struct brontes_matmul_choice {
  size_t struct_size;
  uint64_t groups;              /**< workgroups of one dispatch */
  brontes_matmul_kernel kernel; /**< automatic: nothing to compute */
  uint32_t dispatches;          /**< more than one when K is split or an operand is repacked */
  uint32_t slices;              /**< split-K: slices in one dispatch */
  uint32_t reserved;            /**< 0 */
} brontes_matmul_choice;

/** What brontes_matmul() would run on this device for operands of these shapes. `reason`, one sentence for people, may
 *  be null and is freed with brontes_free(); shapes that do not fit are said to be so there. */
BRONTES_API brontes_status brontes_explain_matmul(const brontes_device* device, const uint64_t* a_dims, size_t a_rank,
                                                  const uint64_t* b_dims, size_t b_rank,
                                                  const brontes_matmul_options* options, brontes_matmul_choice* choice,
                                                  char** reason, brontes_error* error);
/** How many tile sizes a kernel has for a layout. 0 for values without a name. */
BRONTES_API uint32_t brontes_matmul_variants(brontes_matmul_kernel kernel, brontes_layout layout);

/** A product [m, k] x [k, n]. */
typedef struct brontes_matmul_shape {
  uint64_t m;
  uint64_t k;
  uint64_t n;
  brontes_layout layout;
  brontes_precision precision; /**< automatic: f32 */
} brontes_matmul_shape;

/** Called before every shape and at the end, on the calling thread: shapes done, shapes in all, seconds since the
 *  start. 0 stops; what was measured by then counts. */
typedef int32_t (*brontes_tune_callback)(void* user_data, size_t done, size_t total, double seconds);

typedef struct brontes_tune_options {
  size_t struct_size;
  const brontes_matmul_shape* shapes; /**< null: 1 to 1024 rows over weights from 256 x 256 to 4096 x 4096 */
  size_t shape_count;
  double seconds;            /**< the shapes left when it has passed are skipped; 0: 300 */
  int32_t no_compare_access; /**< do not measure the other access modes */
  int32_t no_save;           /**< do not write the file */
  brontes_tune_callback on_progress;
  void* user_data;
} brontes_tune_options;

typedef struct brontes_tune_report {
  size_t struct_size;
  uint64_t measured; /**< shapes */
  uint64_t changed;  /**< of these, the ones with a choice that beats the default */
  uint64_t skipped;  /**< too large for the device, or not measured in time */
  int32_t stopped;   /**< by on_progress */
  int32_t saved;     /**< the file was written */
} brontes_tune_report;

/** Measures every kernel variant that this device can run on every shape, and makes the selector use what is clearly
 *  faster than its own choice: at once on this device, and through the file whenever it is opened. Measure on an
 *  otherwise idle machine. `report` may be null. Thread-safety: any thread; two calls for one device take turns. */
BRONTES_API brontes_status brontes_tune_matmul(const brontes_device* device, const brontes_tune_options* options,
                                               brontes_tune_report* report, brontes_error* error);

/* --- Calling kernels --------------------------------------------------------------------------------------------- */

/** The shape and type of a value that does not exist yet. This struct does not grow. */
typedef struct brontes_value_spec {
  const uint64_t* dims;
  size_t rank;
  brontes_dtype dtype;
} brontes_value_spec;

/** Runs a kernel as an op of the batch: its inputs, in the order of their binding numbers, the shape and type of its
 *  output, the number of workgroups along three axes, and its push constants, if any. What the kernel does not write of
 *  its output is undefined; reading or writing outside its buffers is undefined behaviour. Errors are those of
 *  brontes::Batch::call(). */
BRONTES_API brontes_tensor brontes_call(brontes_batch* batch, const brontes_kernel* kernel,
                                        const brontes_tensor* inputs, size_t input_count,
                                        const brontes_value_spec* output, const uint32_t groups[3], const void* push,
                                        size_t push_bytes);
/** The same for a kernel with any number of outputs, in the order of their binding numbers, into `out`, which has room
 *  for `output_count`; BRONTES_NO_TENSOR after an error. */
BRONTES_API brontes_status brontes_call_all(brontes_batch* batch, const brontes_kernel* kernel,
                                            const brontes_tensor* inputs, size_t input_count,
                                            const brontes_value_spec* outputs, size_t output_count,
                                            const uint32_t groups[3], const void* push, size_t push_bytes,
                                            brontes_tensor* out);

/* --- Recording: outputs ------------------------------------------------------------------------------------------ */

/** Copies x into a resident buffer of the same size and type when the batch runs. */
BRONTES_API brontes_status brontes_store(brontes_batch* batch, brontes_tensor x, const brontes_buffer* destination);
/** destination[ranges] = x as in numpy. x has as many elements as the slice, or broadcasts to its shape. */
BRONTES_API brontes_status brontes_store_slice(brontes_batch* batch, brontes_tensor x,
                                               const brontes_buffer* destination, const brontes_range* ranges,
                                               size_t range_count);
/** Makes x readable after execution even when other ops consume it. Returns x. */
BRONTES_API brontes_tensor brontes_keep(brontes_batch* batch, brontes_tensor x);

/* --- Programs ---------------------------------------------------------------------------------------------------- */

/* What a batch had recorded, planned and encoded once. Tensors are those of the batch, which may be reset or destroyed
 * meanwhile. Running a warm program allocates nothing. Runs of one program follow each other in order. */

BRONTES_API void brontes_program_destroy(brontes_program* program);

/** Replaces the data of an upload, for runs submitted from now on. Waits for runs of this program in flight. Errors:
 *  those of bad tensors, null_data, shape_mismatch, type_mismatch, invalid_argument when x is not an upload. */
BRONTES_API brontes_status brontes_program_write(brontes_program* program, brontes_tensor x, const float* data,
                                                 size_t count, brontes_error* error);
BRONTES_API brontes_status brontes_program_write_i32(brontes_program* program, brontes_tensor x, const int32_t* data,
                                                     size_t count, brontes_error* error);
BRONTES_API brontes_status brontes_program_write_f16_bits(brontes_program* program, brontes_tensor x,
                                                          const uint16_t* data, size_t count, brontes_error* error);
/** Uses another buffer of the same shape and type for an import from the next run on. */
BRONTES_API brontes_status brontes_program_rebind(brontes_program* program, brontes_tensor x,
                                                  const brontes_buffer* buffer, brontes_error* error);
/** Starts a run and returns at once. With `after`, which may be null, the run begins only when that work, of the same
 *  device, is done. `submission` may be null. */
BRONTES_API brontes_status brontes_program_submit(brontes_program* program, const brontes_submission* after,
                                                  brontes_submission** submission, brontes_error* error);
/** Starts a run and waits for it. */
BRONTES_API brontes_status brontes_program_run(brontes_program* program, brontes_error* error);
/** The elements of a readable value after the last run, for which it waits. Errors as in brontes_batch_read(). */
BRONTES_API brontes_status brontes_program_read(const brontes_program* program, brontes_tensor x, float* out,
                                                size_t count, brontes_error* error);
BRONTES_API brontes_status brontes_program_read_i32(const brontes_program* program, brontes_tensor x, int32_t* out,
                                                    size_t count, brontes_error* error);
BRONTES_API brontes_status brontes_program_read_f16_bits(const brontes_program* program, brontes_tensor x,
                                                         uint16_t* out, size_t count, brontes_error* error);
/** Exact counts; those of execution add up over all runs. */
BRONTES_API brontes_status brontes_program_get_stats(const brontes_program* program, brontes_batch_stats* stats,
                                                     brontes_error* error);
/** The device memory it holds: what brontes_batch_predict_memory() said. */
BRONTES_API brontes_status brontes_program_get_memory(const brontes_program* program, brontes_memory_needs* needs,
                                                      brontes_error* error);
/** What a run does. `text` is freed with brontes_free(). */
BRONTES_API brontes_status brontes_program_dump(const brontes_program* program, brontes_dump_format format, char** text,
                                                brontes_error* error);

/** What a program is compared with in a profile, per second; 0: not known. */
typedef struct brontes_profile_options {
  size_t struct_size;
  uint32_t runs;    /**< how often to run; times are the medians. 0: 5 */
  uint32_t merged;  /**< not 0: dispatches with the same op and kernel as one, the longest first */
  double max_flops; /**< arithmetic, where a multiply-add counts as two */
  double max_bytes; /**< memory, read or written */
} brontes_profile_options;

/** Runs the program some times with a timestamp after each dispatch, and says what each takes: a table, or JSON with
 * the members of brontes::Profile. Results are those of any other run. `options` may be null. `text` is freed with
 *  brontes_free(). BRONTES_ERROR_INVALID_ARGUMENT for BRONTES_DUMP_DOT, BRONTES_ERROR_UNSUPPORTED where the
 *  queue has no timestamps. */
BRONTES_API brontes_status brontes_program_profile(brontes_program* program, const brontes_profile_options* options,
                                                   brontes_dump_format format, char** text, brontes_error* error);

/** Runs the program once, one dispatch at a time, and compares one in `every` with a double-precision reference. `ok`
 * is 0 if one is wrong; `text` says which, as text or JSON, and is freed with brontes_free(). Either may be null.
 *  BRONTES_ERROR_INVALID_ARGUMENT for BRONTES_DUMP_DOT, and where `every` is 0. */
BRONTES_API brontes_status brontes_program_shadow_check(brontes_program* program, uint32_t every,
                                                        brontes_dump_format format, int* ok, char** text,
                                                        brontes_error* error);

/* --- Submissions ------------------------------------------------------------------------------------------------- */

/* The work goes on, and finishes, whether or not its submission, program or batch still exists. */

BRONTES_API void brontes_submission_destroy(brontes_submission* submission);
/** Whether waiting would return at once: the work is done, or the device is lost. Never blocks. 1 for null. */
BRONTES_API int brontes_submission_ready(const brontes_submission* submission);

#define BRONTES_FOREVER UINT64_MAX
/** Blocks until the work is done. BRONTES_ERROR_TIMEOUT when it is not within so many nanoseconds, which may be 0. */
BRONTES_API brontes_status brontes_submission_wait(const brontes_submission* submission, uint64_t timeout_ns,
                                                   brontes_error* error);

/* --- Matmul cache ------------------------------------------------------------------------------------------------ */

/* Weights by name, resident on the device, and products with them from host memory to host memory. A weight W[N, K] is
 * row-major, N = rows outputs of K = columns inputs. The first call for a weight, a number of rows and an epilogue
 * plans and encodes; from then on such a call is one submit and allocates nothing. Calls on one cache are serialised. A
 * name is any string that is not empty. */

typedef int32_t brontes_activation;
enum {
  BRONTES_ACTIVATION_NONE = 0,
  BRONTES_ACTIVATION_RELU = 1,
  BRONTES_ACTIVATION_SIGMOID = 2,
  BRONTES_ACTIVATION_TANH = 3,
  BRONTES_ACTIVATION_SWISH = 4, /**< also called SiLU */
  BRONTES_ACTIVATION_GELU = 5,  /**< the exact form, by erf */
  BRONTES_ACTIVATION_GELU_TANH = 6
};
BRONTES_API const char* brontes_activation_name(brontes_activation activation); /**< never null */

/** y = activation(alpha * x W^T + bias), in the same dispatch. */
typedef struct brontes_matmul_epilogue {
  size_t struct_size;
  brontes_activation activation;
  int32_t has_alpha; /**< as in brontes_matmul_options */
  float alpha;
  int32_t no_bias; /**< leaves out the bias that was uploaded with the weight */
} brontes_matmul_epilogue;

typedef struct brontes_matmul_cache_options {
  size_t struct_size;
  uint64_t max_programs;        /**< how many planned calls are kept; 0: 512 */
  brontes_matmul_kernel kernel; /**< forces one kernel for every product, for tests and benchmarks */
  brontes_precision precision;  /**< of every product */
} brontes_matmul_cache_options;

typedef struct brontes_cached_weight_info {
  size_t struct_size;
  uint64_t rows;    /**< N */
  uint64_t columns; /**< K */
  uint64_t bytes;   /**< of device memory, with padding and bias */
  uint64_t parts;   /**< more than one if it is too large for one binding */
  brontes_dtype dtype;
  int32_t bias; /**< whether there is one */
} brontes_cached_weight_info;

BRONTES_API brontes_status brontes_matmul_cache_create(const brontes_device* device,
                                                       const brontes_matmul_cache_options* options,
                                                       brontes_matmul_cache** cache, brontes_error* error);
BRONTES_API void brontes_matmul_cache_destroy(brontes_matmul_cache* cache);

/** Stores f32 data of `count` elements, row-major, as `dtype`; errors as in brontes_weight_from(). A bias has
 *  `bias_count` = rows elements, or none: null and 0. already_exists when there is a weight of that name. */
BRONTES_API brontes_status brontes_matmul_cache_upload_weight(brontes_matmul_cache* cache, const char* name,
                                                              const float* data, size_t count, uint64_t rows,
                                                              uint64_t columns, brontes_dtype dtype, const float* bias,
                                                              size_t bias_count, brontes_error* error);
/** The same from data as GGUF files store it. */
BRONTES_API brontes_status brontes_matmul_cache_upload_stored(brontes_matmul_cache* cache, const char* name,
                                                              const void* data, size_t bytes, uint64_t rows,
                                                              uint64_t columns, brontes_dtype dtype, const float* bias,
                                                              size_t bias_count, brontes_error* error);
/** Replaces a weight by another of any shape and type. not_found if there is none of that name. */
BRONTES_API brontes_status brontes_matmul_cache_replace_weight(brontes_matmul_cache* cache, const char* name,
                                                               const float* data, size_t count, uint64_t rows,
                                                               uint64_t columns, brontes_dtype dtype, const float* bias,
                                                               size_t bias_count, brontes_error* error);
BRONTES_API brontes_status brontes_matmul_cache_replace_stored(brontes_matmul_cache* cache, const char* name,
                                                               const void* data, size_t bytes, uint64_t rows,
                                                               uint64_t columns, brontes_dtype dtype, const float* bias,
                                                               size_t bias_count, brontes_error* error);
/** not_found if there is no such weight. */
BRONTES_API brontes_status brontes_matmul_cache_evict(brontes_matmul_cache* cache, const char* name,
                                                      brontes_error* error);
/** Evicts all. The I/O buffers stay. */
BRONTES_API brontes_status brontes_matmul_cache_clear(brontes_matmul_cache* cache, brontes_error* error);
/** 0 for null. */
BRONTES_API int brontes_matmul_cache_contains(const brontes_matmul_cache* cache, const char* name);
BRONTES_API size_t brontes_matmul_cache_weight_count(const brontes_matmul_cache* cache);   /**< 0 for null */
BRONTES_API uint64_t brontes_matmul_cache_weight_bytes(const brontes_matmul_cache* cache); /**< of device memory */
/** The names, sorted, as an array of `count` strings, which is freed as a whole with one brontes_free(). */
BRONTES_API brontes_status brontes_matmul_cache_names(const brontes_matmul_cache* cache, char*** names, size_t* count,
                                                      brontes_error* error);
BRONTES_API brontes_status brontes_matmul_cache_get_info(const brontes_matmul_cache* cache, const char* name,
                                                         brontes_cached_weight_info* info, brontes_error* error);
/** The weight itself, for brontes_import_weight(). It stays valid after the name is evicted or replaced. It does not
 *  include the bias. */
BRONTES_API brontes_status brontes_matmul_cache_weight(const brontes_matmul_cache* cache, const char* name,
                                                       brontes_weight** weight, brontes_error* error);
/** output[m, N] = input[m, K] W^T with the epilogue, which may be null. Output and input may be the same memory. Does
 *  nothing when m is 0. Errors: not_found; shape_mismatch unless input has m * K elements and output m * N; null_data;
 *  limit_exceeded; and whatever the driver reports. On failure the output is unchanged. */
BRONTES_API brontes_status brontes_matmul_cache_matmul(brontes_matmul_cache* cache, const char* name,
                                                       const float* input, size_t input_count, float* output,
                                                       size_t output_count, uint64_t m,
                                                       const brontes_matmul_epilogue* epilogue, brontes_error* error);
/** Bytes of the buffers that calls share. */
BRONTES_API uint64_t brontes_matmul_cache_io_bytes(const brontes_matmul_cache* cache);
/** Planned calls that are kept. */
BRONTES_API size_t brontes_matmul_cache_program_count(const brontes_matmul_cache* cache);
/** Frees the I/O buffers and the planned calls. */
BRONTES_API brontes_status brontes_matmul_cache_trim(brontes_matmul_cache* cache, brontes_error* error);
/** Exact counts of all calls so far. */
BRONTES_API brontes_status brontes_matmul_cache_get_stats(const brontes_matmul_cache* cache, brontes_batch_stats* stats,
                                                          brontes_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
