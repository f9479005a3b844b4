#include "kernels/cuda/memory.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/context.h"

namespace paddle::cuda {
namespace {

/// Sizes of blocks: multiples of 256 bytes, with eight sizes between a power of two and the next.
size_t block_size(size_t bytes) {
  constexpr size_t kUnit = 256;
  size_t step = kUnit;
  while (step * 16 < bytes) step *= 2;
  return (std::max<size_t>(bytes, 1) + step - 1) / step * step;
}

class Pool {
 public:
  explicit Pool(int device) : device_(device) {}

  void* allocate(size_t bytes) {
    constexpr size_t kMax = size_t{1} << 48;
    if (bytes > kMax)
      fail(ErrorCode::kDevice, "cuda: out of memory: cannot allocate ", human_bytes(bytes));
    const size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    collect(false);
    if (const CUdeviceptr kept = take(size)) return pointer_to(kept);
    CUdeviceptr memory = 0;
    CUresult result = driver().cuMemAlloc(&memory, size);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      collect(true);
      if (const CUdeviceptr kept = take(size)) return pointer_to(kept);
      free_kept();
      result = driver().cuMemAlloc(&memory, size);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      size_t available = 0, total = 0;
      check(driver().cuMemGetInfo(&available, &total), "cuMemGetInfo");
      fail(ErrorCode::kDevice, "cuda:", device_, ": out of memory: cannot allocate ",
           human_bytes(bytes), ", ", human_bytes(available), " of ", human_bytes(total),
           " are free");
    }
    check(result, "cuMemAlloc");
    sizes_[memory] = size;
    return pointer_to(memory);
  }

  void release(void* memory) {
    const std::lock_guard lock(mutex_);
    if (holds_ > 0)
      held_.push_back(memory);
    else
      note_released(memory);
  }

  void hold() {
    const std::lock_guard lock(mutex_);
    ++holds_;
  }
  void take() {
    const std::lock_guard lock(mutex_);
    if (--holds_ > 0) return;
    for (void* const memory : std::exchange(held_, {})) note_released(memory);
  }

  void trim(size_t keep) {
    const std::lock_guard lock(mutex_);
    collect(false);
    size_t total = 0;
    for (const auto& [size, blocks] : kept_) total += size * blocks.size();
    if (total > keep) free_kept();
    if (keep > 0) return;
    while (!spare_.empty()) {
      const CUevent event = spare_.back();
      spare_.pop_back();
      check(driver().cuEventDestroy(event), "cuEventDestroy");
    }
  }

  bool has(paddle_stream stream) {
    const std::lock_guard lock(mutex_);
    return std::ranges::count(streams_, stream) > 0;
  }

  size_t kept() {
    const std::lock_guard lock(mutex_);
    size_t total = 0;
    for (const auto& [size, blocks] : kept_) total += size * blocks.size();
    return total;
  }

  void add(paddle_stream stream) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(stream);
  }
  void remove(paddle_stream stream) {
    const std::lock_guard lock(mutex_);
    std::erase(streams_, stream);
  }

 private:
  struct Released {
    CUdeviceptr memory;
    std::vector<CUevent> events;  ///< one per stream
  };

  void note_released(void* memory) {
    Released released{address_of(memory), {}};
    for (const paddle_stream stream : streams_) {
      CUevent event = nullptr;
      if (!spare_.empty()) {
        event = spare_.back();
        spare_.pop_back();
      } else if (driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        event = nullptr;
      }
      if (event) released.events.push_back(event);
      // Without an event the stream is waited for; a broken one does not use the block any more,
      // and its next call reports the error.
      if (!event || driver().cuEventRecord(event, stream->handle) != CUDA_SUCCESS)
        driver().cuStreamSynchronize(stream->handle);
    }
    released_.push_back(std::move(released));
  }

  CUdeviceptr take(size_t size) {
    const auto it = kept_.find(size);
    if (it == kept_.end() || it->second.empty()) return 0;
    const CUdeviceptr memory = it->second.back();
    it->second.pop_back();
    return memory;
  }

  /// Keeps the released blocks whose work is done; with `wait` all of them.
  void collect(bool wait) {
    while (!released_.empty()) {
      Released& oldest = released_.front();
      while (!oldest.events.empty()) {
        const CUevent event = oldest.events.back();
        const CUresult result =
            wait ? driver().cuEventSynchronize(event) : driver().cuEventQuery(event);
        if (result == CUDA_ERROR_NOT_READY) return;
        check(result, "cuEventQuery");
        spare_.push_back(event);
        oldest.events.pop_back();
      }
      kept_[sizes_.at(oldest.memory)].push_back(oldest.memory);
      released_.pop_front();
    }
  }

  void free_kept() {
    for (auto& [size, blocks] : kept_)
      while (!blocks.empty()) {
        const CUdeviceptr memory = blocks.back();
        blocks.pop_back();
        sizes_.erase(memory);
        check(driver().cuMemFree(memory), "cuMemFree");
      }
    kept_.clear();
  }

  int device_;
  std::mutex mutex_;
  std::map<CUdeviceptr, size_t> sizes_;
  std::map<size_t, std::vector<CUdeviceptr>> kept_;
  std::deque<Released> released_;
  int holds_ = 0;
  std::vector<void*> held_;  ///< released meanwhile
  std::vector<CUevent> spare_;
  std::vector<paddle_stream> streams_;
};

/// Never destroyed, since arrays of static lifetime may be released later.
Pool& pool(int device) {
  static std::mutex mutex;
  static std::map<int, Pool*> pools;
  const std::lock_guard lock(mutex);
  Pool*& out = pools[device];
  if (!out) out = new Pool(device);
  return *out;
}

}  // namespace

void* allocate_memory(int device, size_t bytes) {
  use_gpu(device);
  return pool(device).allocate(bytes);
}

void release_memory(int device, void* memory) {
  use_gpu(device);
  pool(device).release(memory);
}

size_t kept_bytes(int device) { return pool(device).kept(); }

void free_kept(int device, size_t keep) {
  use_gpu(device);
  pool(device).trim(keep);
}

bool is_stream(paddle_stream stream) {
  for (int device = 0; device < gpu_count(); ++device)
    if (pool(device).has(stream)) return true;
  return false;
}

void hold_released(int device) { pool(device).hold(); }

void take_released(int device) {
  use_gpu(device);
  pool(device).take();
}

void add_stream(paddle_stream stream) { pool(stream->device).add(stream); }
void remove_stream(paddle_stream stream) { pool(stream->device).remove(stream); }

}  // namespace paddle::cuda
