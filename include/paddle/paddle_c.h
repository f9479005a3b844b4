#ifndef PADDLE_PADDLE_C_H
#define PADDLE_PADDLE_C_H
/* Prediction from C, and from any language that can call C.
 *
 *   paddle_model* model;
 *   if (paddle_model_open("runs/digits/model", &model) != PADDLE_OK) puts(paddle_last_error());
 *
 * Every function that can fail returns a status; paddle_last_error() has the message of the last
 * failure on the same thread. No function throws, prints or exits. Null pointers, indices out of
 * range, impossible shapes, and handles that are closed or were never opened are answered with
 * PADDLE_USAGE. Threads may share a model: its predictions run one at a time. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PADDLE_C_API __attribute__((visibility("default")))
#else
#define PADDLE_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t paddle_status;
enum {
  PADDLE_OK = 0,
  PADDLE_USAGE = 2,    /* a call with invalid arguments */
  PADDLE_CONFIG = 3,   /* a YAML or JSON file */
  PADDLE_DATA = 4,     /* an input of a model */
  PADDLE_MODEL = 5,    /* weights or a model file */
  PADDLE_DEVICE = 6,   /* memory, disk or device */
  PADDLE_PEER = 7,     /* another rank of the run was lost */
  PADDLE_INTERNAL = 70 /* a bug in the library */
};

typedef int32_t paddle_dtype;
enum {
  PADDLE_BOOL = 0, /* one byte, 0 or 1 */
  PADDLE_INT8 = 1,
  PADDLE_INT16 = 2,
  PADDLE_INT32 = 3,
  PADDLE_INT64 = 4,
  PADDLE_UINT8 = 5,
  PADDLE_UINT16 = 6,
  PADDLE_UINT32 = 7,
  PADDLE_UINT64 = 8,
  PADDLE_FLOAT16 = 9,
  PADDLE_BFLOAT16 = 10,
  PADDLE_FLOAT32 = 11,
  PADDLE_FLOAT64 = 12
};

typedef struct paddle_model paddle_model;
typedef struct paddle_result paddle_result;

/* An input or output of a model. The pointers are valid until the model is closed. */
typedef struct paddle_tensor_info {
  const char* name;
  paddle_dtype dtype;
  int32_t rank;         /* -1: any number of axes */
  const int64_t* shape; /* rank sizes, -1 where the inputs decide */
} paddle_tensor_info;

/* Elements in row-major order. */
typedef struct paddle_array {
  paddle_dtype dtype;
  int32_t rank;
  const int64_t* shape; /* rank sizes; may be null for rank 0 */
  const void* data;
  size_t bytes; /* size of the memory at data: elements times bytes of one */
} paddle_array;

/* "0.1.0" */
PADDLE_C_API const char* paddle_version(void);
/* Message of the last failure on this thread, "" before any. Valid until the next failure. */
PADDLE_C_API const char* paddle_last_error(void);

/* Opens a run folder, its model folder, a checkpoint, an ONNX file or a model file. */
PADDLE_C_API paddle_status paddle_model_open(const char* path, paddle_model** model);
/* Closes it; a null pointer is fine. A prediction in progress on another thread is completed. */
PADDLE_C_API paddle_status paddle_model_close(paddle_model* model);

PADDLE_C_API paddle_status paddle_model_input_count(paddle_model* model, size_t* count);
PADDLE_C_API paddle_status paddle_model_output_count(paddle_model* model, size_t* count);
PADDLE_C_API paddle_status paddle_model_input(paddle_model* model, size_t index,
                                              paddle_tensor_info* info);
PADDLE_C_API paddle_status paddle_model_output(paddle_model* model, size_t index,
                                               paddle_tensor_info* info);

/* Predicts on one array for each input, in order. The inputs are read during the call only. Inputs
 * and results of a trained model are in the units of its data files, as those of paddle-infer are:
 * scaled columns are scaled here, and predictions of a scaled field are scaled back. */
PADDLE_C_API paddle_status paddle_model_run(paddle_model* model, const paddle_array* inputs,
                                            size_t count, paddle_result** result);
PADDLE_C_API paddle_status paddle_result_count(paddle_result* result, size_t* count);
/* Output `index`; the pointers are valid until the result is freed. */
PADDLE_C_API paddle_status paddle_result_get(paddle_result* result, size_t index,
                                             paddle_array* array);
PADDLE_C_API paddle_status paddle_result_free(paddle_result* result);

#ifdef __cplusplus
}
#endif
#endif /* PADDLE_PADDLE_C_H */
