// The device functions of mirror: memory, streams, events and copies.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/limits.h"
#include "base/parallel.h"
#include "kernels/mirror/address.h"
#include "kernels/mirror/mirror.h"
#include "kernels/mirror/stream.h"
#include "tensor/device_functions.h"

namespace paddle::mirror {
namespace {

// Targets of the handles of the table. The structs that the table names stay undefined: several
// devices are in one program.
struct StreamHandle {
  std::shared_ptr<Stream> stream;
  int device = 0;
};
struct EventHandle {
  Event event;
  bool timed = false;
  /// Of timed ones: when the last record was reached, in nanoseconds; -1 before.
  std::shared_ptr<std::atomic<int64_t>> time = {};
};
struct GraphHandle {
  std::shared_ptr<const Graph> graph;
  int device = 0;
};
StreamHandle& of(paddle_stream stream) { return *reinterpret_cast<StreamHandle*>(stream); }
EventHandle& of(paddle_event event) { return *reinterpret_cast<EventHandle*>(event); }
GraphHandle& of(paddle_graph graph) { return *reinterpret_cast<GraphHandle*>(graph); }

constexpr int kDevices = 2;  // two, so that programs that mix them up fail
constexpr size_t kAlignment = 256;

DeviceCounts& counts_of(int device) {
  static auto* const all = new std::array<DeviceCounts, kDevices>;
  return all->at(static_cast<size_t>(device));
}

thread_local std::string error_text;
thread_local std::string error_location;

/// Runs the body and turns its exception into a status.
template <class Body>
int guarded(Body&& body) {
  try {
    body();
    return 0;
  } catch (const Error& e) {
    error_text = e.message();
    error_location = e.location().text();
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    error_text = e.what();
    error_location.clear();
    return static_cast<int>(ErrorCode::kInternal);
  }
}

/// Allocations by address. It also holds the addresses for leak detection, since callers have only
/// tagged ones.
struct Allocations {
  struct Block {
    size_t bytes;
    int device;
  };
  std::mutex mutex;
  std::map<void*, Block> blocks;
  size_t total = 0;
};

Allocations& allocations() {
  static auto* const table = new Allocations;
  return *table;
}

size_t rounded(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

int device_count() { return kDevices; }

int memory_info(int, size_t* available, size_t* total) {
  return guarded([&] {
    Allocations& all = allocations();
    const std::lock_guard lock(all.mutex);
    *total = static_cast<size_t>(limits().memory);
    *available = *total - std::min(*total, all.total);
  });
}

// --- memory ---

void* take_memory(int device, size_t bytes) {
  const auto limit = static_cast<size_t>(limits().memory);
  void* real = nullptr;
  if (bytes <= limit) {
    Allocations& all = allocations();
    const std::lock_guard lock(all.mutex);
    if (bytes <= limit - std::min(limit, all.total))
      real = std::aligned_alloc(kAlignment, rounded(bytes));
  }
  if (!real)
    fail(ErrorCode::kDevice, "mirror: out of memory: cannot allocate ", human_bytes(bytes));
  ++counts_of(device).allocations;
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  all.blocks[real] = {bytes, device};
  all.total += bytes;
  return real;
}

void give_back(void* real) {
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  const auto it = all.blocks.find(real);
  all.total -= it->second.bytes;
  all.blocks.erase(it);
  std::free(real);
}

/// Whether the bytes lie in a block of the device.
bool is_memory_of(int device, const void* real, size_t bytes) {
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  auto it = all.blocks.upper_bound(const_cast<void*>(real));
  if (it == all.blocks.begin()) return false;
  --it;
  const size_t offset = static_cast<size_t>(static_cast<const std::byte*>(real) -
                                            static_cast<const std::byte*>(it->first));
  return it->second.device == device && offset + bytes <= it->second.bytes;
}

int allocate(int device, size_t bytes, void** memory) {
  return guarded([&] {
    Stream::reject_while_capturing("allocate");
    *memory = to_device_address(take_memory(device, bytes));
  });
}

int release(int, void* memory) {
  return guarded([&] { Stream::after_all([real = to_host_address(memory)] { give_back(real); }); });
}

int allocate_host(size_t bytes, void** memory) {
  *memory =
      bytes <= SIZE_MAX - kAlignment ? std::aligned_alloc(kAlignment, rounded(bytes)) : nullptr;
  return guarded([&] {
    if (!*memory) fail(ErrorCode::kDevice, "out of memory: cannot allocate ", human_bytes(bytes));
  });
}

int release_host(void* memory) {
  std::free(memory);
  return 0;
}

/// While the stream records, the memory belongs to the record.
int allocate_queued(paddle_stream stream, size_t bytes, void** memory) {
  return guarded([&] {
    void* const real = take_memory(of(stream).device, bytes);
    if (const auto graph = of(stream).stream->capture())
      graph->memory.emplace_back(real, [](void* block) { give_back(block); });
    *memory = to_device_address(real);
  });
}

int release_queued(paddle_stream stream, void* memory) {
  return guarded([&] {
    if (of(stream).stream->capture()) return;
    of(stream).stream->push([real = to_host_address(memory)] { give_back(real); });
  });
}

/// The pool keeps nothing.
int trim_pool(int, size_t) { return 0; }

/// All memory of the host is alike.
int pin_host(void*, size_t) { return 0; }
int unpin_host(void*) { return 0; }

// --- streams and events ---

int create_stream(int device, paddle_stream* stream) {
  return guarded([&] {
    *stream = reinterpret_cast<paddle_stream>(new StreamHandle{make_stream(), device});
  });
}

int destroy_stream(paddle_stream stream) {
  of(stream).stream->drop_capture();
  delete &of(stream);
  return 0;
}

int synchronize_stream(paddle_stream stream) {
  return guarded([&] {
    ++counts_of(of(stream).device).waits;
    of(stream).stream->synchronize();
  });
}

int create_event(int, paddle_event* event) {
  return guarded([&] { *event = reinterpret_cast<paddle_event>(new EventHandle); });
}

int create_timing_event(int, paddle_event* event) {
  return guarded([&] {
    *event = reinterpret_cast<paddle_event>(new EventHandle{.event = {}, .timed = true});
  });
}

int destroy_event(paddle_event event) {
  delete &of(event);
  return 0;
}

int record_event(paddle_event event, paddle_stream stream) {
  return guarded([&] {
    if (of(event).timed && !of(stream).stream->capture()) {
      of(event).time = std::make_shared<std::atomic<int64_t>>(-1);
      of(stream).stream->push([time = of(event).time] {
        *time = std::chrono::duration_cast<std::chrono::nanoseconds>(
                    std::chrono::steady_clock::now().time_since_epoch())
                    .count();
      });
    }
    of(stream).stream->record(of(event).event);
  });
}

int wait_event(paddle_stream stream, paddle_event event) {
  return guarded([&] { of(stream).stream->wait(of(event).event); });
}

int synchronize_event(paddle_event event) {
  return guarded([&] { Stream::synchronize(of(event).event); });
}

int query_event(paddle_event event, int* reached) {
  return guarded([&] { *reached = Stream::reached(of(event).event) ? 1 : 0; });
}

int elapsed(paddle_event begin, paddle_event end, double* seconds) {
  return guarded([&] {
    for (const paddle_event event : {begin, end})
      if (!of(event).timed || !of(event).time || *of(event).time < 0)
        fail(ErrorCode::kUsage, "mirror: elapsed: ",
             of(event).timed ? "an event has not been reached" : "an event has no clock");
    *seconds = 1e-9 * static_cast<double>(*of(end).time - *of(begin).time);
  });
}

// --- work ---

/// Queues a copy between real addresses.
void push_copy(paddle_stream stream, void* to, const void* from, size_t bytes,
               paddle_copy_kind kind) {
  if (of(stream).stream->push([=] {
        if (bytes > 0) std::memmove(to, from, bytes);
      }))
    counts_of(of(stream).device).add_copy(kind, bytes);
  else if (const auto graph = of(stream).stream->capture())
    graph->copies.add(kind, bytes);
}

int copy(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  return guarded([&] {
    if (kind < PADDLE_COPY_TO_DEVICE || kind > PADDLE_COPY_ON_DEVICE)
      fail(ErrorCode::kUsage, "mirror: copy: unknown kind ", kind);
    void* const target = kind == PADDLE_COPY_TO_HOST ? to : to_host_address(to);
    const void* const source =
        kind == PADDLE_COPY_TO_DEVICE ? from : to_host_address(const_cast<void*>(from));
    push_copy(stream, target, source, bytes, static_cast<paddle_copy_kind>(kind));
  });
}

int can_access_peer(int, int, int* can_access) {
  *can_access = 1;
  return 0;
}

int copy_peer(paddle_stream stream, void* to, int to_device, const void* from, int from_device,
              size_t bytes) {
  return guarded([&] {
    void* const target = to_host_address(to);
    const void* const source = to_host_address(const_cast<void*>(from));
    if (of(stream).device != to_device && of(stream).device != from_device)
      fail(ErrorCode::kUsage, "mirror: copy_peer: the stream is of neither device");
    if (!is_memory_of(to_device, target, bytes) || !is_memory_of(from_device, source, bytes))
      fail(ErrorCode::kUsage, "mirror: copy_peer: the memory is not that of the device");
    push_copy(stream, target, source, bytes, PADDLE_COPY_ON_DEVICE);
  });
}

int fill(paddle_stream stream, void* to, int byte, size_t bytes) {
  return guarded([&] {
    of(stream).stream->push([=, target = to_host_address(to)] {
      if (bytes > 0) std::memset(target, byte, bytes);
    });
  });
}

// --- graphs ---

int begin_capture(paddle_stream stream) {
  return guarded([&] { of(stream).stream->begin_capture(); });
}

int end_capture(paddle_stream stream, paddle_graph* graph) {
  return guarded([&] {
    *graph = nullptr;
    *graph = reinterpret_cast<paddle_graph>(
        new GraphHandle{of(stream).stream->end_capture(), of(stream).device});
  });
}

int launch_graph(paddle_graph graph, paddle_stream stream) {
  return guarded([&] {
    if (of(graph).device != of(stream).device)
      fail(ErrorCode::kUsage, "mirror: launch_graph: the stream is of another device");
    of(stream).stream->launch(of(graph).graph);
    ++counts_of(of(stream).device).graph_launches;
    counts_of(of(stream).device).add(of(graph).graph->copies);
  });
}

int destroy_graph(paddle_graph graph) {
  delete &of(graph);
  return 0;
}

// --- facts ---

int properties(int device, paddle_device_properties* out) {
  static const std::array<std::string, kDevices> names = {"mirror of the CPU",
                                                          "second mirror of the CPU"};
  paddle_device_properties all{};
  all.flags = PADDLE_DEVICE_REPEATABLE;
  all.name = names.at(static_cast<size_t>(device)).c_str();
  all.memory = all.largest_allocation = static_cast<uint64_t>(limits().memory);
  all.alignment = kAlignment;
  all.compute_units = static_cast<uint32_t>(thread_count());
  all.dlpack_type = 12;  // kDLExtDev
  return fill_in(*out, all);
}

int statistics(int device, paddle_device_statistics* out) {
  return fill_in(*out, counts_of(device).statistics());
}

const char* last_error() { return error_text.c_str(); }
const char* last_error_location() { return error_location.c_str(); }

}  // namespace

const paddle_device_api& device_functions() {
  static constexpr paddle_device_api kApi = {.struct_size = sizeof(paddle_device_api),
                                             .version = PADDLE_DEVICE_API_VERSION,
                                             .name = "mirror",
                                             .device_count = device_count,
                                             .memory_info = memory_info,
                                             .allocate = allocate,
                                             .release = release,
                                             .allocate_host = allocate_host,
                                             .release_host = release_host,
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
                                             .open = nullptr,
                                             .describe = nullptr,
                                             .properties = properties,
                                             .statistics = statistics,
                                             .can_access_peer = can_access_peer,
                                             .copy_peer = copy_peer,
                                             .allocate_queued = allocate_queued,
                                             .release_queued = release_queued,
                                             .trim_pool = trim_pool,
                                             .pin_host = pin_host,
                                             .unpin_host = unpin_host,
                                             .create_timing_event = create_timing_event,
                                             .query_event = query_event,
                                             .elapsed = elapsed,
                                             .begin_capture = begin_capture,
                                             .end_capture = end_capture,
                                             .launch_graph = launch_graph,
                                             .destroy_graph = destroy_graph};
  return kApi;
}

uint64_t queued_work() { return Stream::queued(); }

void launch(paddle_stream stream, std::function<void()> work, std::string location) {
  if (of(stream).stream->push(std::move(work), std::move(location)))
    ++counts_of(of(stream).device).launches;
}

void launch_and_wait(paddle_stream stream, std::function<void()> work, std::string location) {
  launch(stream, std::move(work), std::move(location));
  of(stream).stream->synchronize();
}

}  // namespace paddle::mirror
