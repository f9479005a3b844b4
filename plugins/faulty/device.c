/* The device of plugins/relay with a fault: what `paddle plugin check` has to find (faults.txt). */

#define paddle_plugin_main relay_main
#include "../relay/relay.c"
#undef paddle_plugin_main

#include <float.h>

static paddle_device_api faulty;
static const paddle_device_api* const faulty_devices[] = {&faulty};

/* --- memory --- */

enum { SHIFT = 16 };
static int misaligned(int device, size_t bytes, void** memory) {
  const int status = allocate(device, bytes + SHIFT, memory);
  if (status == 0) *memory = (char*)*memory + SHIFT;
  return status;
}
static int release_misaligned(int device, void* memory) {
  return release(device, memory ? (char*)memory - SHIFT : NULL);
}
static int release_now(int device, void* memory) {
  (void)device;
  pthread_mutex_lock(&lock);
  if (memory) give_back(to_real(memory));
  pthread_mutex_unlock(&lock);
  return 0;
}
static int release_nothing(int device, void* memory) {
  (void)device, (void)memory;
  return 0;
}
/* Blocks of a pool, which are smaller than asked for. */
static int rounded_down(int device, size_t bytes, void** memory) {
  static char* next;
  static size_t left;
  const size_t rounded = bytes / ALIGNMENT * ALIGNMENT;
  if (bytes > 100000) return allocate(device, bytes, memory);
  if (left < bytes + ALIGNMENT) {
    void* pool;
    left = 4 << 20;
    if (allocate(device, left, &pool)) return PADDLE_DEVICE;
    next = pool;
  }
  *memory = next;
  next += rounded;
  left -= rounded;
  return 0;
}
static int release_of_pool(int device, void* memory) {
  (void)device, (void)memory;
  return 0;
}
static int too_much(int device, size_t bytes, void** memory) {
  return allocate(device, bytes > MEMORY ? 1 : bytes, memory);
}
static int first_device(int device, size_t bytes, void** memory) {
  (void)device;
  return allocate(0, bytes, memory);
}

/* --- copies --- */

static int copy_tail(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  return copy(stream, to, from, bytes > 64 ? bytes / 4 * 4 : bytes, kind);
}
/* Reads the memory of the host once more, with the next copy. */
static int copy_again(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  static _Thread_local void* last_to;
  static _Thread_local const void* last_from;
  static _Thread_local size_t last_bytes;
  if (last_bytes && kind == PADDLE_COPY_TO_HOST)
    copy(stream, last_to, last_from, last_bytes, PADDLE_COPY_TO_DEVICE);
  last_to = to, last_from = from;
  last_bytes = kind == PADDLE_COPY_TO_DEVICE ? bytes : 0;
  return copy(stream, to, from, bytes, kind);
}
static int copy_turned_round(paddle_stream stream, void* to, const void* from, size_t bytes,
                             int kind) {
  return kind == PADDLE_COPY_ON_DEVICE ? copy(stream, (void*)from, to, bytes, kind)
                                       : copy(stream, to, from, bytes, kind);
}
static int copy_aligned_down(paddle_stream stream, void* to, const void* from, size_t bytes,
                             int kind) {
  return copy(stream, kind == PADDLE_COPY_TO_HOST ? to : (void*)((uintptr_t)to & ~(uintptr_t)3),
              from, bytes, kind);
}
static int empty_copy(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  return bytes == 0 ? fail(PADDLE_USAGE, "a copy without bytes")
                    : copy(stream, to, from, bytes, kind);
}

/* --- streams and events --- */

static int reached_at_record(paddle_event event, paddle_stream stream) {
  const int status = record_event(event, stream);
  pthread_mutex_lock(&lock);
  if (status == 0) event->mark->reached = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return status;
}
static int no_wait(paddle_stream stream, paddle_event event) {
  (void)stream, (void)event;
  return 0;
}
/* Looks for the record of the event when the stream gets there. */
static int run_late_wait(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  const struct paddle_event_s* const event = task->operands[0];
  pthread_mutex_lock(&lock);
  while (event->mark && !event->mark->reached) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return 0;
}
static int late_wait(paddle_stream stream, paddle_event event) {
  struct task* const task = new_task();
  task->run = run_late_wait;
  task->operands[0] = event;
  return push(stream, task);
}
static int record_once(paddle_event event, paddle_stream stream) {
  return event->mark ? 0 : record_event(event, stream);
}
static int synchronize_early(paddle_stream stream) {
  pthread_mutex_lock(&lock);
  const int busy = stream->done < stream->pushed;
  pthread_mutex_unlock(&lock);
  return busy ? 0 : synchronize_stream(stream);
}

/* --- errors --- */

static int error_lost(paddle_stream stream) {
  synchronize_stream(stream);
  return 0;
}
static int error_twice(paddle_stream stream) {
  static _Thread_local int again;
  const int status = synchronize_stream(stream);
  if (status)
    again = status;
  else if (again) {
    const int before = again;
    again = 0;
    return before;
  }
  return status;
}
static const char* no_place(void) { return ""; }
static int dead_after_error(paddle_stream stream) {
  static int dead;
  const int status = synchronize_stream(stream);
  if (status) dead = status;
  return dead;
}
static char text_of_all[256];
static int remember(int status) {
  if (status) copy_text(text_of_all, sizeof text_of_all, error_text);
  return status;
}
static int allocate_remembering(int device, size_t bytes, void** memory) {
  return remember(allocate(device, bytes, memory));
}
static int copy_remembering(paddle_stream stream, void* to, const void* from, size_t bytes,
                            int kind) {
  return remember(copy(stream, to, from, bytes, kind));
}
static int synchronize_remembering(paddle_stream stream) {
  return remember(synchronize_stream(stream));
}
static const char* last_error_of_all(void) { return text_of_all; }

/* --- kernels --- */

static int run_relu_of_nan(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  const float* const x = task->operands[0];
  float* const out = task->results[0];
  for (int64_t i = 0; i < task->sizes[0]; ++i) out[i] = x[i] > 0 ? x[i] : 0;
  return 0;
}
static paddle_status prepare_relu_of_nan(paddle_call* call, const paddle_request* request,
                                         paddle_instance* instance) {
  (void)call;
  return prepare_elementwise(request, instance, NAME ":relu",
                             (struct kernel_state){run_relu_of_nan, {0}});
}
static const paddle_kernel relu_of_nan = {sizeof relu_of_nan, "relu", NAME, "float32",
                                          prepare_relu_of_nan};
/* Sums that do not go beyond the largest number. */
static int run_bounded_add(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  const float *x = task->operands[0], *y = task->operands[1];
  float* const out = task->results[0];
  for (int64_t i = 0; i < task->sizes[0]; ++i) {
    const float sum = x[i] + y[i];
    out[i] = sum > FLT_MAX ? FLT_MAX : sum < -FLT_MAX ? -FLT_MAX : sum;
  }
  return 0;
}
static paddle_status prepare_bounded_add(paddle_call* call, const paddle_request* request,
                                         paddle_instance* instance) {
  (void)call;
  return prepare_elementwise(request, instance, NAME ":add",
                             (struct kernel_state){run_bounded_add, {0}});
}
static const paddle_kernel bounded_add = {sizeof bounded_add, "add", NAME, "float32",
                                          prepare_bounded_add};

/* Looks for NaN and infinity in all elements but the last one. */
static int run_search(const struct task* task, char* text, size_t capacity) {
  (void)text, (void)capacity;
  unsigned char finite = 1;
  for (int operand = 0; operand < 2; ++operand) {
    const float* const x = task->operands[operand];
    for (int64_t i = 0; x && i + 1 < task->sizes[operand]; ++i)
      if (!(x[i] >= -FLT_MAX && x[i] <= FLT_MAX)) finite = 0;
  }
  *(unsigned char*)task->results[0] = finite;
  return 0;
}
static paddle_status prepare_search(paddle_call* call, const paddle_request* request,
                                    paddle_instance* instance) {
  (void)call;
  struct kernel_state state = {run_search, {0}};
  if (request->operand_count > 2) return PADDLE_DECLINED;
  for (uint32_t i = 0; i < request->operand_count; ++i)
    if ((state.sizes[i] = packed_count(request->operands[i])) < 0) return PADDLE_DECLINED;
  return give(instance, NAME ":all_finite", state);
}
static const paddle_kernel search = {sizeof search, "all_finite", NAME, "float32", prepare_search};

static const paddle_kernel* faulty_kernels[1];

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* from,
                                                      paddle_plugin* plugin) {
  const paddle_status status = relay_main(from, plugin);
  const char* const fault = getenv("FAULT");
  faulty = table;
  plugin->devices = faulty_devices;
  if (!fault) return status;
#define FAULT_IS(name) (strcmp(fault, name) == 0)
  if (FAULT_IS("short_table")) faulty.struct_size = offsetof(paddle_device_api, copy);
  if (FAULT_IS("null_function")) faulty.fill = NULL;
  if (FAULT_IS("misaligned")) faulty.allocate = misaligned, faulty.release = release_misaligned;
  if (FAULT_IS("released_early")) faulty.release = release_now;
  if (FAULT_IS("leak")) faulty.release = release_nothing;
  if (FAULT_IS("size_rounded_down"))
    faulty.allocate = rounded_down, faulty.release = release_of_pool;
  if (FAULT_IS("too_much_given")) faulty.allocate = too_much;
  if (FAULT_IS("wrong_device")) faulty.allocate = first_device;
  if (FAULT_IS("copy_tail")) faulty.copy = copy_tail;
  if (FAULT_IS("host_memory_kept")) faulty.copy = copy_again;
  if (FAULT_IS("copy_turned_round")) faulty.copy = copy_turned_round;
  if (FAULT_IS("copy_aligned_down")) faulty.copy = copy_aligned_down;
  if (FAULT_IS("empty_copy")) faulty.copy = empty_copy;
  if (FAULT_IS("event_at_record")) faulty.record_event = reached_at_record;
  if (FAULT_IS("wait_ignored")) faulty.wait_event = no_wait;
  if (FAULT_IS("wait_of_late_record")) faulty.wait_event = late_wait;
  if (FAULT_IS("record_again_lost")) faulty.record_event = record_once;
  if (FAULT_IS("synchronize_early")) faulty.synchronize_stream = synchronize_early;
  if (FAULT_IS("error_lost")) faulty.synchronize_stream = error_lost;
  if (FAULT_IS("error_twice")) faulty.synchronize_stream = error_twice;
  if (FAULT_IS("no_place")) faulty.last_error_location = no_place;
  if (FAULT_IS("dead_after_error")) faulty.synchronize_stream = dead_after_error;
  if (FAULT_IS("message_of_others")) {
    faulty.allocate = allocate_remembering;
    faulty.copy = copy_remembering;
    faulty.synchronize_stream = synchronize_remembering;
    faulty.last_error = last_error_of_all;
  }
  if (FAULT_IS("relu_of_nan")) faulty_kernels[0] = &relu_of_nan;
  if (FAULT_IS("infinity_bounded")) faulty_kernels[0] = &bounded_add;
  if (FAULT_IS("last_not_searched")) faulty_kernels[0] = &search;
  if (faulty_kernels[0]) {
    plugin->kernels = faulty_kernels;
    plugin->kernel_count = 1;
  }
  return status;
}
