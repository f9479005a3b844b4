// A device whose memory is the host's and whose streams do everything at once, in a table of the
// headers that were included before. Two clients fill it in under different names.

#include <stdlib.h>
#include <string.h>

static int one_device(void) { return 1; }
static int memory_info(int, size_t* available, size_t* total) {
  *available = *total = size_t{1} << 30;
  return 0;
}
static int allocate(int, size_t bytes, void** memory) {
  *memory = aligned_alloc(256, (bytes + 256) / 256 * 256);
  return *memory ? 0 : PADDLE_DEVICE;
}
static int release(int, void* memory) {
  free(memory);
  return 0;
}
static int allocate_host(size_t bytes, void** memory) { return allocate(0, bytes, memory); }
static int release_host(void* memory) { return release(0, memory); }
static int create_stream(int, paddle_stream* stream) {
  *stream = static_cast<paddle_stream>(malloc(1));
  return 0;
}
static int destroy_stream(paddle_stream stream) {
  free(stream);
  return 0;
}
static int synchronize_stream(paddle_stream) { return 0; }
static int create_event(int, paddle_event* event) {
  *event = static_cast<paddle_event>(malloc(1));
  return 0;
}
static int destroy_event(paddle_event event) {
  free(event);
  return 0;
}
static int record_event(paddle_event, paddle_stream) { return 0; }
static int wait_event(paddle_stream, paddle_event) { return 0; }
static int synchronize_event(paddle_event) { return 0; }
static int copy(paddle_stream, void* to, const void* from, size_t bytes, int) {
  memmove(to, from, bytes);
  return 0;
}
static int fill(paddle_stream, void* to, int byte, size_t bytes) {
  memset(to, byte, bytes);
  return 0;
}
static const char* last_error(void) { return "out of memory"; }
static const char* last_error_location(void) { return ""; }

static paddle_device_api host_device(const char* name) {
  paddle_device_api api;
  memset(&api, 0, sizeof api);
  api.struct_size = sizeof api;
  api.version = PADDLE_DEVICE_API_VERSION;
  api.name = name;
  api.device_count = one_device;
  api.memory_info = memory_info;
  api.allocate = allocate;
  api.release = release;
  api.allocate_host = allocate_host;
  api.release_host = release_host;
  api.create_stream = create_stream;
  api.destroy_stream = destroy_stream;
  api.synchronize_stream = synchronize_stream;
  api.create_event = create_event;
  api.destroy_event = destroy_event;
  api.record_event = record_event;
  api.wait_event = wait_event;
  api.synchronize_event = synchronize_event;
  api.copy = copy;
  api.fill = fill;
  api.last_error = last_error;
  api.last_error_location = last_error_location;
  return api;
}
