#ifndef PADDLE_PADDLE_C_H
#define PADDLE_PADDLE_C_H
/* Prediction and text generation from C, and from any language that can call C.
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

/* As in plugin/abi.h. */
#ifndef PADDLE_STATUS_DEFINED
#define PADDLE_STATUS_DEFINED
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
#endif
#ifndef PADDLE_COMPLEX_DEFINED
#define PADDLE_COMPLEX_DEFINED
enum { PADDLE_COMPLEX64 = 13, PADDLE_COMPLEX128 = 14 }; /* two floats, two doubles */
#endif

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

/* Option structures begin with their size as the caller knows it, sizeof(the structure): later
 * versions of the library may know more fields, which then have their defaults. A structure of
 * zeros, apart from the size, has the defaults of all fields. Null strings are empty. */
typedef struct paddle_model_options {
  size_t struct_size;
  const char* weights;          /* safetensors file, for model files in YAML */
  const char* function;         /* entry of a model file; "model" by default */
  const char* const* overrides; /* "params.width=32", for model files */
  size_t override_count;
  uint64_t seed;         /* of random weights, where a model file gets none */
  int32_t raw;           /* not 0: arrays as the model itself takes and gives them */
  int32_t reserved;      /* 0 */
  const char* precision; /* "float32" (default), "bfloat16" or "float16" */
  const char* device;    /* "cpu" (default), or another one of paddle_devices, such as "cuda:1" */
  uint64_t memory;       /* bytes that a prediction may need; 0: what the device has */
  const char* const* leave_out; /* "fusion", "layout", "rewrites", "batch_tiling", "codegen",
                                 * "winograd" or passes such as "fold_batch_norm": what is left
                                 * out of the compilation */
  size_t leave_out_count;
  int32_t exact;     /* not 0: the bits of computing operation by operation */
  int32_t reserved2; /* 0 */
} paddle_model_options;

/* The kinds of devices that this library can compute on, separated by spaces: "cpu mirror cuda".
 * Valid to the end of the process. */
PADDLE_C_API const char* paddle_devices(void);

/* Threads that all computations of this process use, 1 to 1024; at first the cores it may use. Not
 * while another thread computes. */
PADDLE_C_API paddle_status paddle_set_threads(int32_t threads);

/* Opens a run folder, its model folder, a checkpoint, an ONNX file or a model file. */
PADDLE_C_API paddle_status paddle_model_open(const char* path, paddle_model** model);
/* The same with options, which may be null. */
PADDLE_C_API paddle_status paddle_model_open_with(const char* path,
                                                  const paddle_model_options* options,
                                                  paddle_model** model);
/* A file in memory. */
typedef struct paddle_file {
  const char* name; /* "net.onnx" */
  const void* data;
  size_t bytes;
} paddle_file;
/* Opens a model whose files are in memory: an ONNX file, the files of a model folder, or a model
 * file and its weights. They are read during the call only. `options` may be null. */
PADDLE_C_API paddle_status paddle_model_open_memory(const paddle_file* files, size_t count,
                                                    const paddle_model_options* options,
                                                    paddle_model** model);
/* Another handle with the same weights in memory, which another thread can run at the same time. */
PADDLE_C_API paddle_status paddle_model_clone(paddle_model* model, paddle_model** clone);
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

/* The arrays of an .npz, .npy or .safetensors file as a result, in the order of their names. */
PADDLE_C_API paddle_status paddle_arrays_load(const char* path, paddle_result** result);
/* Name of output `index` of a prediction, or of an array of a file; valid until the result is
 * freed.
 */
PADDLE_C_API paddle_status paddle_result_name(paddle_result* result, size_t index,
                                              const char** name);
/* Writes arrays by name into an .npz or .safetensors file, or one array into an .npy file. */
PADDLE_C_API paddle_status paddle_arrays_save(const char* path, const char* const* names,
                                              const paddle_array* arrays, size_t count);

/* Memory of this process in bytes: in memory now, and the most that was. Either may be null. */
PADDLE_C_API paddle_status paddle_memory_usage(uint64_t* resident, uint64_t* peak);
/* Gives free memory that is kept for reuse back to the system. */
PADDLE_C_API paddle_status paddle_release_memory(void);

/* ---- training ------------------------------------------------------------------------------ */

typedef struct paddle_trainer paddle_trainer;

typedef struct paddle_trainer_options {
  size_t struct_size;
  const char* output;           /* run folder; runs/<name of the config> by default */
  const char* const* overrides; /* "optimizer.lr=1e-3": any value of the config */
  size_t override_count;
  int32_t resume;              /* not 0: continue from the newest checkpoint of `output` */
  int32_t overwrite;           /* not 0: replace a run that is in `output` */
  int32_t eager;               /* not 0: operation by operation, without compiling the step */
  int32_t reserved;            /* 0 */
  const char* initial_weights; /* safetensors file */
  const char* device;          /* "cpu" (default), or another one of paddle_devices */
  uint64_t memory;             /* bytes that a compiled step may need; 0: what the device has */
} paddle_trainer_options;

/* A step, filled in as far as the caller's struct_size says. */
typedef struct paddle_train_step {
  size_t struct_size;
  int64_t step;  /* counts from 1 */
  int64_t epoch; /* whole passes over the data */
  double loss, learning_rate;
  int32_t evaluated; /* not 0: an evaluation followed, with this loss */
  int32_t reserved;  /* 0 */
  double evaluation_loss;
} paddle_train_step;

/* Opens a training run from a config file. `options` may be null. */
PADDLE_C_API paddle_status paddle_trainer_open(const char* config,
                                               const paddle_trainer_options* options,
                                               paddle_trainer** trainer);
/* Trains on the next batch. `ended` becomes 1 at the end of the config or of the data, and 0 after
 * a step, which is described in `step` (may be null). */
PADDLE_C_API paddle_status paddle_trainer_step(paddle_trainer* trainer, paddle_train_step* step,
                                               int32_t* ended);
/* Writes a checkpoint of the last step. `path` (may be null) is its folder, valid until the next
 * call with this trainer. */
PADDLE_C_API paddle_status paddle_trainer_save(paddle_trainer* trainer, const char** path);
/* Ends the run: writes its checkpoint and the model. `model_folder` (may be null) is valid until
 * the trainer is closed. */
PADDLE_C_API paddle_status paddle_trainer_finish(paddle_trainer* trainer,
                                                 const char** model_folder);
/* Closes it; a null pointer is fine. Without paddle_trainer_finish the run can be resumed from its
 * last checkpoint. */
PADDLE_C_API paddle_status paddle_trainer_close(paddle_trainer* trainer);

/* ---- language models ----------------------------------------------------------------------- */

typedef struct paddle_language_model paddle_language_model;
typedef struct paddle_encoder paddle_encoder;

typedef struct paddle_language_model_options {
  size_t struct_size;
  int64_t context;         /* tokens of prompt and answer; 0: the model's */
  const char* kv_cache;    /* "f32" (default), "bf16" or "int8" */
  const char* activations; /* "int16" (default), "int8" or "float32" */
  const char* weights;     /* "as-is" (default), "int8" or "int4" */
  const char* adapter;     /* folder of a PEFT adapter */
  const char* family;      /* model file */
} paddle_language_model_options;

typedef struct paddle_generate_options {
  size_t struct_size;
  int64_t length;     /* tokens at most; 0: 200 */
  double temperature; /* 0: always the most likely token */
  int64_t top_k;      /* 0: all tokens */
  double top_p;       /* 0: 1 */
  double min_p;
  double repetition_penalty; /* 0: 1 */
  double presence_penalty, frequency_penalty;
  uint64_t seed;
  const char* const* stops; /* the text ends before the first of these */
  size_t stop_count;
  const char* json_schema; /* the text is JSON that is valid for this schema (its text) */
  const char* regex;       /* constrain the output to strings that match this regular expression */
  /* Called with each piece of text, UTF-8 without a zero at its end; 0 ends the generation. Must
   * not call the model. */
  int32_t (*on_text)(const char* text, size_t bytes, void* user);
  void* user; /* given to on_text */
} paddle_generate_options;

/* A generated text. */
typedef struct paddle_text {
  char* data; /* UTF-8, with a zero at the end; released with paddle_text_free */
  size_t bytes;
  int64_t prompt_tokens, generated_tokens;
} paddle_text;

/* Opens a GGUF file or a Hugging Face folder. `options` may be null. */
PADDLE_C_API paddle_status paddle_language_model_open(const char* path,
                                                      const paddle_language_model_options* options,
                                                      paddle_language_model** model);
/* Closes it; a null pointer is fine. A call in progress on another thread is completed. */
PADDLE_C_API paddle_status paddle_language_model_close(paddle_language_model* model);
PADDLE_C_API paddle_status paddle_language_model_context(paddle_language_model* model,
                                                         int64_t* tokens);
/* Continues a text. `options` may be null. */
PADDLE_C_API paddle_status paddle_language_model_generate(paddle_language_model* model,
                                                          const char* prompt,
                                                          const paddle_generate_options* options,
                                                          paddle_text* text);
/* The answer to a conversation, an object in JSON with the variables of the model's chat template:
 * {"messages": [{"role": "user", "content": "Hello"}], "add_generation_prompt": true}. */
PADDLE_C_API paddle_status paddle_language_model_chat(paddle_language_model* model,
                                                      const char* conversation,
                                                      const paddle_generate_options* options,
                                                      paddle_text* text);
/* The token ids of a text, with the tokenizer's own beginning and end if `special` is not 0.
 * `count` becomes their number, of which at most `capacity` are written to `tokens`. */
PADDLE_C_API paddle_status paddle_language_model_encode(paddle_language_model* model,
                                                        const char* text, int32_t special,
                                                        int64_t* tokens, size_t capacity,
                                                        size_t* count);
/* The text of token ids; its token counts are 0. */
PADDLE_C_API paddle_status paddle_language_model_decode(paddle_language_model* model,
                                                        const int64_t* tokens, size_t count,
                                                        paddle_text* text);
/* Releases the memory of a text and clears it. */
PADDLE_C_API paddle_status paddle_text_free(paddle_text* text);

/* Opens an encoder such as BERT, for vectors of texts. */
PADDLE_C_API paddle_status paddle_encoder_open(const char* path, paddle_encoder** encoder);
PADDLE_C_API paddle_status paddle_encoder_close(paddle_encoder* encoder);
/* Numbers of a vector. */
PADDLE_C_API paddle_status paddle_encoder_width(paddle_encoder* encoder, size_t* width);
/* Writes the vector of a text to `vector`, which has room for `width` numbers. */
PADDLE_C_API paddle_status paddle_encoder_embed(paddle_encoder* encoder, const char* text,
                                                float* vector, size_t width);

#ifdef __cplusplus
}
#endif
#endif /* PADDLE_PADDLE_C_H */
