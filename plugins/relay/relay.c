/* A device in plain C, without hardware: its memory is the host's, which programs cannot read
 * directly, and each of its streams is a thread. It shows what a device has to do, and is a start
 * for one with a driver.
 *
 *   paddle plugin build plugins/relay/relay.c -o relay.so
 *   paddle plugin check relay.so
 *   paddle train config.yaml --device relay --plugin relay.so
 */

#define _POSIX_C_SOURCE 200809L

#include <paddle/plugin/plugin.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "relay"
enum { DEVICES = 2, ALIGNMENT = 256 };
static const size_t MEMORY = (size_t)4 << 30; /* of each device */

PADDLE_PLUGIN_NOTE(NAME, "1.0.0");

/* Guards all that follows; `changed` tells of each change. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* --- errors: a message and a place for each thread --- */

static _Thread_local char error_text[256], error_place[256];

static void copy_text(char* to, size_t capacity, const char* from) {
  snprintf(to, capacity, "%s", from);
}

static int fail(int status, const char* text) {
  snprintf(error_text, sizeof error_text, NAME ": %.240s", text);
  error_place[0] = '\0';
  return status;
}

static const char* last_error(void) { return error_text; }
static const char* last_error_location(void) { return error_place; }

/* --- memory --- */

/* In front of each block. */
struct header {
  size_t bytes;
  int device;
};
static size_t used[DEVICES];

/* Addresses of the device have one more bit, which makes them invalid for the host: a program that
 * forgets a copy crashes. */
#define DEVICE_BIT ((uintptr_t)1 << 53)
static void* to_device(void* real) { return (void*)((uintptr_t)real | DEVICE_BIT); }
static void* to_real(const void* address) { return (void*)((uintptr_t)address & ~DEVICE_BIT); }

static int device_count(void) { return DEVICES; }

static int memory_info(int device, size_t* available, size_t* total) {
  pthread_mutex_lock(&lock);
  *total = MEMORY;
  *available = MEMORY - used[device];
  pthread_mutex_unlock(&lock);
  return 0;
}

static int allocate(int device, size_t bytes, void** memory) {
  pthread_mutex_lock(&lock);
  const int fits = bytes <= MEMORY - used[device];
  if (fits) used[device] += bytes;
  pthread_mutex_unlock(&lock);
  char* const block = fits ? aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 2) * ALIGNMENT) : NULL;
  if (!block) {
    if (fits) {
      pthread_mutex_lock(&lock);
      used[device] -= bytes;
      pthread_mutex_unlock(&lock);
    }
    char text[96];
    snprintf(text, sizeof text, "out of memory: cannot allocate %zu bytes", bytes);
    return fail(PADDLE_DEVICE, text);
  }
  *(struct header*)(void*)block = (struct header){bytes, device};
  *memory = to_device(block + ALIGNMENT);
  return 0;
}

/* With the lock. */
static void give_back(void* real) {
  char* const block = (char*)real - ALIGNMENT;
  const struct header* const header = (const struct header*)(void*)block;
  used[header->device] -= header->bytes;
  free(block);
}

/* --- streams --- */

/* A point of a stream. The event and all tasks that refer to it own it together. */
struct mark {
  int owners;
  int reached;
};

/* Memory that is freed when the last of its owners, one task of each busy stream, is done. */
struct release {
  int owners;
  void* real;
};

/* Work of a stream. `run` gives a status and may write a message. */
struct task {
  struct task* next;
  int (*run)(const struct task* task, char* text, size_t capacity);
  void* results[1];
  const void* operands[2];
  int64_t sizes[4];
  struct mark* reaches;
  struct mark* awaits;
  struct release* releases;
  char location[200];
};

struct paddle_stream_s {
  int device;
  int closed;
  struct task *first, *last;
  uint64_t pushed, done;
  int error; /* the first since the last report */
  char text[256], location[200];
  struct paddle_stream_s* next;
};
static struct paddle_stream_s* streams;

static void drop_mark(struct mark* mark) {
  if (mark && --mark->owners == 0) free(mark);
}

/* With the lock, which is free while the work runs. */
static void run_task(struct paddle_stream_s* stream, struct task* task) {
  while (task->awaits && !task->awaits->reached) pthread_cond_wait(&changed, &lock);
  if (task->run) {
    char text[256] = "";
    pthread_mutex_unlock(&lock);
    const int status = task->run(task, text, sizeof text);
    pthread_mutex_lock(&lock);
    if (status && !stream->error) {
      stream->error = status;
      copy_text(stream->text, sizeof stream->text, text);
      copy_text(stream->location, sizeof stream->location, task->location);
    }
  }
  if (task->reaches) task->reaches->reached = 1;
  if (task->releases && --task->releases->owners == 0) {
    give_back(task->releases->real);
    free(task->releases);
  }
  drop_mark(task->reaches);
  drop_mark(task->awaits);
  free(task);
  ++stream->done;
  pthread_cond_broadcast(&changed);
}

/* The thread of a stream. A stream that is destroyed still does the work that it has. */
static void* serve(void* argument) {
  struct paddle_stream_s* const stream = argument;
  pthread_mutex_lock(&lock);
  while (stream->first || !stream->closed) {
    if (!stream->first) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    struct task* const task = stream->first;
    stream->first = task->next;
    run_task(stream, task);
  }
  struct paddle_stream_s** at = &streams;
  while (*at != stream) at = &(*at)->next;
  *at = stream->next;
  pthread_mutex_unlock(&lock);
  free(stream);
  return NULL;
}

static int create_stream(int device, paddle_stream* out) {
  struct paddle_stream_s* const stream = calloc(1, sizeof *stream);
  if (!stream) return fail(PADDLE_DEVICE, "not enough memory for a stream");
  stream->device = device;
  pthread_mutex_lock(&lock);
  stream->next = streams;
  streams = stream;
  pthread_t thread;
  const int failed = pthread_create(&thread, NULL, serve, stream);
  if (failed)
    streams = stream->next;
  else
    pthread_detach(thread);
  pthread_mutex_unlock(&lock);
  if (failed) {
    free(stream);
    return fail(PADDLE_DEVICE, "no thread for a stream");
  }
  *out = stream;
  return 0;
}

static int destroy_stream(paddle_stream stream) {
  pthread_mutex_lock(&lock);
  stream->closed = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 0;
}

static struct task* new_task(void) { return calloc(1, sizeof(struct task)); }

/* With the lock. */
static void push_locked(struct paddle_stream_s* stream, struct task* task) {
  if (stream->first)
    stream->last->next = task;
  else
    stream->first = task;
  stream->last = task;
  ++stream->pushed;
  pthread_cond_broadcast(&changed);
}

static int push(paddle_stream stream, struct task* task) {
  pthread_mutex_lock(&lock);
  push_locked(stream, task);
  pthread_mutex_unlock(&lock);
  return 0;
}

static int synchronize_stream(paddle_stream stream) {
  pthread_mutex_lock(&lock);
  const uint64_t wanted = stream->pushed;
  while (stream->done < wanted) pthread_cond_wait(&changed, &lock);
  const int status = stream->error;
  if (status) {
    fail(status, stream->text);
    copy_text(error_place, sizeof error_place, stream->location);
    stream->error = 0;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* Takes effect when all streams have done the work that they have now. */
static int release(int device, void* memory) {
  (void)device;
  if (!memory) return 0;
  struct release* const later = calloc(1, sizeof *later);
  if (!later) return fail(PADDLE_DEVICE, "not enough memory");
  later->real = to_real(memory);
  pthread_mutex_lock(&lock);
  for (struct paddle_stream_s* each = streams; each; each = each->next) {
    if (each->done == each->pushed) continue;
    struct task* const task = new_task();
    if (!task) continue;
    task->releases = later;
    ++later->owners;
    push_locked(each, task);
  }
  if (later->owners == 0) {
    give_back(later->real);
    free(later);
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

/* --- events --- */

struct paddle_event_s {
  struct mark* mark; /* of the last record; null before the first */
};

static int create_event(int device, paddle_event* event) {
  (void)device;
  *event = calloc(1, sizeof **event);
  return *event ? 0 : fail(PADDLE_DEVICE, "not enough memory for an event");
}

static int destroy_event(paddle_event event) {
  pthread_mutex_lock(&lock);
  drop_mark(event->mark);
  pthread_mutex_unlock(&lock);
  free(event);
  return 0;
}

/* Each record is a new mark, so that those who wait for the one before are not affected. */
static int record_event(paddle_event event, paddle_stream stream) {
  struct mark* const mark = calloc(1, sizeof *mark);
  struct task* const task = new_task();
  if (!mark || !task) {
    free(mark);
    free(task);
    return fail(PADDLE_DEVICE, "not enough memory for an event");
  }
  mark->owners = 2;
  task->reaches = mark;
  pthread_mutex_lock(&lock);
  drop_mark(event->mark);
  event->mark = mark;
  push_locked(stream, task);
  pthread_mutex_unlock(&lock);
  return 0;
}

static int wait_event(paddle_stream stream, paddle_event event) {
  struct task* const task = new_task();
  if (!task) return fail(PADDLE_DEVICE, "not enough memory");
  pthread_mutex_lock(&lock);
  if (event->mark) {
    ++event->mark->owners;
    task->awaits = event->mark;
  }
  push_locked(stream, task);
  pthread_mutex_unlock(&lock);
  return 0;
}

static int synchronize_event(paddle_event event) {
  pthread_mutex_lock(&lock);
  struct mark* const mark = event->mark;
  if (mark) {
    ++mark->owners;
    while (!mark->reached) pthread_cond_wait(&changed, &lock);
    drop_mark(mark);
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

/* --- copies --- */

static int run_copy(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  if (task->sizes[0] > 0) memmove(task->results[0], task->operands[0], (size_t)task->sizes[0]);
  return 0;
}

static int run_fill(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  if (task->sizes[0] > 0) memset(task->results[0], (int)task->sizes[1], (size_t)task->sizes[0]);
  return 0;
}

static int copy(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  if (kind < PADDLE_COPY_TO_DEVICE || kind > PADDLE_COPY_ON_DEVICE)
    return fail(PADDLE_USAGE, "copy: unknown kind");
  struct task* const task = new_task();
  if (!task) return fail(PADDLE_DEVICE, "not enough memory for a copy");
  task->run = run_copy;
  task->results[0] = kind == PADDLE_COPY_TO_HOST ? to : to_real(to);
  task->operands[0] = kind == PADDLE_COPY_TO_DEVICE ? from : to_real(from);
  task->sizes[0] = (int64_t)bytes;
  return push(stream, task);
}

/* All devices of this kind have the same memory. */
static int copy_peer(paddle_stream stream, void* to, int to_device, const void* from,
                     int from_device, size_t bytes) {
  if (stream->device != to_device && stream->device != from_device)
    return fail(PADDLE_USAGE, "copy_peer: the stream is of neither device");
  return copy(stream, to, from, bytes, PADDLE_COPY_ON_DEVICE);
}

static int can_access_peer(int device, int peer, int* can_access) {
  (void)device, (void)peer;
  *can_access = 1;
  return 0;
}

static int fill(paddle_stream stream, void* to, int byte, size_t bytes) {
  struct task* const task = new_task();
  if (!task) return fail(PADDLE_DEVICE, "not enough memory for a fill");
  task->run = run_fill;
  task->results[0] = to_real(to);
  task->sizes[0] = (int64_t)bytes;
  task->sizes[1] = byte;
  return push(stream, task);
}

static int properties(int device, paddle_device_properties* out) {
  static const char* const names[DEVICES] = {"relay to the host", "second relay to the host"};
  const paddle_device_properties all = {.struct_size = out->struct_size,
                                        .flags = PADDLE_DEVICE_REPEATABLE,
                                        .name = names[device],
                                        .memory = MEMORY,
                                        .largest_allocation = MEMORY,
                                        .alignment = ALIGNMENT};
  memcpy(out, &all, out->struct_size < sizeof all ? out->struct_size : sizeof all);
  return 0;
}

static const paddle_device_api table = {.struct_size = sizeof(paddle_device_api),
                                        .version = PADDLE_DEVICE_API_VERSION,
                                        .name = NAME,
                                        .device_count = device_count,
                                        .memory_info = memory_info,
                                        .allocate = allocate,
                                        .release = release,
                                        .create_stream = create_stream,
                                        .destroy_stream = destroy_stream,
                                        .synchronize_stream = synchronize_stream,
                                        .create_event = create_event,
                                        .destroy_event = destroy_event,
                                        .record_event = record_event,
                                        .wait_event = wait_event,
                                        .synchronize_event = synchronize_event,
                                        .copy = copy,
                                        .fill = fill,
                                        .last_error = last_error,
                                        .last_error_location = last_error_location,
                                        .properties = properties,
                                        .can_access_peer = can_access_peer,
                                        .copy_peer = copy_peer};

/* --- kernels: `run` queues a task, which has all that it needs --- */

static const paddle_host* host;

static int run_add(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  const float *x = task->operands[0], *y = task->operands[1];
  float* const out = task->results[0];
  for (int64_t i = 0; i < task->sizes[0]; ++i) out[i] = x[i] + y[i];
  return 0;
}

static int run_multiply(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  const float *x = task->operands[0], *y = task->operands[1];
  float* const out = task->results[0];
  for (int64_t i = 0; i < task->sizes[0]; ++i) out[i] = x[i] * y[i];
  return 0;
}

/* NaN stays NaN. */
static int run_relu(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  const float* const x = task->operands[0];
  float* const out = task->results[0];
  for (int64_t i = 0; i < task->sizes[0]; ++i) out[i] = x[i] <= 0 ? 0 : x[i];
  return 0;
}

/* [rows, inner] x [inner, columns] */
static int run_matmul(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  const float *x = task->operands[0], *y = task->operands[1];
  float* const out = task->results[0];
  const int64_t rows = task->sizes[0], inner = task->sizes[1], columns = task->sizes[2];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) sum += x[i * inner + k] * y[k * columns + j];
      out[i * columns + j] = sum;
    }
  return 0;
}

/* Rows of a table. An index out of range is an error of the stream, which its next wait reports. */
static int run_embedding(const struct task* task, char* text, size_t capacity) {
  const int64_t* const x = task->operands[0];
  const int64_t count = task->sizes[0], rows = task->sizes[1], width = task->sizes[2];
  for (int64_t i = 0; i < count; ++i) {
    if (x[i] < 0 || x[i] >= rows) {
      snprintf(text, capacity, "embedding: the index %lld is not one of %lld rows", (long long)x[i],
               (long long)rows);
      return PADDLE_DATA;
    }
    memcpy((float*)task->results[0] + i * width, (const float*)task->operands[1] + x[i] * width,
           (size_t)width * sizeof(float));
  }
  return 0;
}

/* What `prepare` keeps: a task without addresses. */
struct kernel_state {
  int (*run)(const struct task* task, char* text, size_t capacity);
  int64_t sizes[4];
};

static paddle_status queue_kernel(const void* state, const paddle_run* run) {
  const struct kernel_state* const kernel = state;
  struct task* const task = new_task();
  if (!task) return host->fail(run->call, PADDLE_DEVICE, "not enough memory");
  task->run = kernel->run;
  memcpy(task->sizes, kernel->sizes, sizeof task->sizes);
  for (uint32_t i = 0; i < run->operand_count && i < 2; ++i)
    task->operands[i] = to_real(run->operands[i]);
  task->results[0] = to_real(run->results[0]);
  copy_text(task->location, sizeof task->location, run->location);
  return push(run->stream, task);
}

/* The number of elements; -1 if they are not packed. */
static int64_t packed_count(const paddle_view* view) {
  int64_t count = 1;
  int packed = 1;
  for (int32_t i = view->rank; i-- > 0;) {
    if (view->shape[i] != 1 && view->strides[i] != count) packed = 0;
    count *= view->shape[i];
  }
  return packed || count == 0 ? count : -1;
}

static paddle_status give(paddle_instance* instance, const char* name, struct kernel_state state) {
  struct kernel_state* const kept = malloc(sizeof *kept);
  if (!kept) return PADDLE_DECLINED;
  *kept = state;
  instance->state = kept;
  instance->destroy = free;
  instance->run = queue_kernel;
  instance->implementation = name;
  return PADDLE_OK;
}

/* Operands and result of one size: others are declined, and run on the host. */
static paddle_status prepare_elementwise(const paddle_request* request, paddle_instance* instance,
                                         const char* name, struct kernel_state state) {
  const int64_t count = packed_count(request->results[0]);
  for (uint32_t i = 0; i < request->operand_count; ++i)
    if (count < 0 || packed_count(request->operands[i]) != count ||
        request->operands[i]->dtype != PADDLE_FLOAT32)
      return PADDLE_DECLINED;
  state.sizes[0] = count;
  return give(instance, name, state);
}

static paddle_status prepare_add(paddle_call* call, const paddle_request* request,
                                 paddle_instance* instance) {
  (void)call;
  return prepare_elementwise(request, instance, NAME ":add", (struct kernel_state){run_add, {0}});
}

static paddle_status prepare_multiply(paddle_call* call, const paddle_request* request,
                                      paddle_instance* instance) {
  (void)call;
  return prepare_elementwise(request, instance, NAME ":multiply",
                             (struct kernel_state){run_multiply, {0}});
}

static paddle_status prepare_relu(paddle_call* call, const paddle_request* request,
                                  paddle_instance* instance) {
  (void)call;
  return prepare_elementwise(request, instance, NAME ":relu", (struct kernel_state){run_relu, {0}});
}

static paddle_status prepare_matmul(paddle_call* call, const paddle_request* request,
                                    paddle_instance* instance) {
  (void)call;
  const paddle_view *x = request->operands[0], *y = request->operands[1];
  if (x->rank != 2 || y->rank != 2 || packed_count(x) < 0 || packed_count(y) < 0 ||
      y->dtype != PADDLE_FLOAT32 ||
      host->attr_bool(request, host->attr_index(request, "transpose_x")) ||
      host->attr_bool(request, host->attr_index(request, "transpose_y")))
    return PADDLE_DECLINED;
  return give(instance, NAME ":matmul",
              (struct kernel_state){run_matmul, {x->shape[0], x->shape[1], y->shape[1]}});
}

static paddle_status prepare_embedding(paddle_call* call, const paddle_request* request,
                                       paddle_instance* instance) {
  (void)call;
  const paddle_view *x = request->operands[0], *weight = request->operands[1];
  const int64_t* padding; /* rows of this number are zeros, which is left to the host */
  if (host->attr_ints(request, host->attr_index(request, "padding_idx"), &padding) > 0)
    return PADDLE_DECLINED;
  if (x->dtype != PADDLE_INT64 || weight->dtype != PADDLE_FLOAT32 || weight->rank != 2 ||
      packed_count(x) < 0 || packed_count(weight) < 0)
    return PADDLE_DECLINED;
  return give(
      instance, NAME ":embedding",
      (struct kernel_state){run_embedding, {packed_count(x), weight->shape[0], weight->shape[1]}});
}

static const paddle_kernel add = {sizeof add, "add", NAME, "float32", prepare_add};
static const paddle_kernel multiply = {sizeof add, "multiply", NAME, "float32", prepare_multiply};
static const paddle_kernel relu = {sizeof add, "relu", NAME, "float32", prepare_relu};
static const paddle_kernel matmul = {sizeof add, "matmul", NAME, "float32", prepare_matmul};
static const paddle_kernel embedding = {sizeof add, "embedding", NAME, "int64", prepare_embedding};
static const paddle_kernel* const kernels[] = {&add, &multiply, &relu, &matmul, &embedding};
static const paddle_device_api* const devices[] = {&table};

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* from,
                                                      paddle_plugin* plugin) {
  if (!PADDLE_PLUGIN_COVERS(paddle_plugin, devices, plugin->struct_size)) return PADDLE_USAGE;
  host = from;
  plugin->needs_minor = 1;
  plugin->name = NAME;
  plugin->version = "1.0.0";
  plugin->summary = "a device that forwards to the memory of the host";
  plugin->kernel_count = sizeof kernels / sizeof kernels[0];
  plugin->kernels = kernels;
  plugin->device_count = 1;
  plugin->devices = devices;
  return PADDLE_OK;
}
