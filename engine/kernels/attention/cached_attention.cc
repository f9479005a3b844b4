// Caches of keys and values, and attention to them. A token's result depends on its query and on
// the keys and values of its sequence only: not on the tokens that are computed with it.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernels/attention/cached_simd.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/core/kernel.h"
#include "ops/generated/generation.h"
#include "ops/generation/packed_format.h"

namespace paddle::cpu {
namespace {

/// Places of one token and head in a cache: elements are `stride` apart.
struct HeadPlace {
  std::byte* data;
  std::byte* scale;  ///< of an int8 cache
  int64_t stride;
};

struct CacheShape {
  CacheShape(const Layout& cache, bool of_keys)
      : keys(of_keys),
        dtype(cache.dtype),
        slots(of_keys ? cache.shape[0] * kKeyBlock : cache.shape[0]),
        heads(cache.shape[1]),
        stored(cache.shape[2]) {}

  int64_t width() const { return dtype == DType::kI8 ? stored - kCacheScaleBytes : stored; }
  /// Bytes from block to block of keys, or from slot to slot of values.
  int64_t step_bytes() const { return heads * stored * (keys ? kKeyBlock : 1) * item_size(dtype); }
  HeadPlace at(std::byte* cache, int64_t slot, int64_t head) const {
    const int64_t item = item_size(dtype);
    if (!keys) {
      std::byte* const row = cache + (slot * heads + head) * stored * item;
      return {row, row + width(), 1};
    }
    const int64_t lane = slot % kKeyBlock;
    std::byte* const block = cache + (slot / kKeyBlock * heads + head) * stored * kKeyBlock * item;
    return {block + lane * item,
            block + width() * kKeyBlock + lane * static_cast<int64_t>(sizeof(float)), kKeyBlock};
  }

  bool keys;
  DType dtype;
  int64_t slots, heads, stored;
};

/// Where slots are in a cache: at their own number, or by the blocks of a paged one.
struct SlotMap {
  SlotMap(const Layout& table, int64_t cache_slots)
      : paged(table.present), slots(table.present ? table.shape[0] * kKeyBlock : cache_slots) {}

  bool paged;
  int64_t slots;  ///< that can be named
};

/// The block of a paged cache; kData if the cache does not have it.
int64_t checked_block(const char* op, int64_t block, int64_t cache_slots) {
  if (block < 0 || block >= cache_slots / kKeyBlock)
    fail(ErrorCode::kData, op, ": block ", block, " is not in a cache of ", cache_slots / kKeyBlock,
         " blocks");
  return block;
}

template <class T>
void store_head(const float* x, int64_t n, const HeadPlace& place) {
  T* const to = reinterpret_cast<T*>(place.data);
  if constexpr (std::is_same_v<T, int8_t>) {
    float top = 0;
    for (int64_t i = 0; i < n; ++i) top = std::max(top, std::abs(x[i]));
    const float scale = top / 127, inverse = top > 0 ? 127 / top : 0;
    for (int64_t i = 0; i < n; ++i)
      to[i * place.stride] = static_cast<int8_t>(std::lrint(x[i] * inverse));
    std::memcpy(place.scale, &scale, sizeof scale);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * place.stride] = static_cast<T>(x[i]);
  }
}

template <class T>
std::unique_ptr<Kernel> append(const KernelRequest& request) {
  const CacheShape cache(request.operands[0], CacheAppendAttrs(request.attrs).keys);
  const SlotMap map(request.operands[3], cache.slots);
  const int64_t tokens = request.operands[1].shape[0];
  const auto bytes =
      static_cast<size_t>(storage_bytes(request.operands[0].dtype, request.operands[0].size()));
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    if (results[0] != operands[0]) std::memcpy(results[0], operands[0], bytes);
    auto* const out = static_cast<std::byte*>(results[0]);
    const auto* const value = static_cast<const float*>(operands[1]);
    const auto* const slots = static_cast<const int64_t*>(operands[2]);
    const auto* const blocks = static_cast<const int64_t*>(operands[3]);
    const int64_t width = cache.width(),
                  grain = 8192 / std::max<int64_t>(1, cache.heads * width) + 1;
    parallel_for(tokens, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        if (slots[t] < 0) continue;
        if (slots[t] >= map.slots)
          fail(ErrorCode::kData, "cache_append: slot ", slots[t], " is out of range for ",
               map.slots, " slots");
        int64_t place = slots[t];
        if (map.paged)
          place = place % kKeyBlock +
                  kKeyBlock * checked_block("cache_append", blocks[place / kKeyBlock], cache.slots);
        for (int64_t h = 0; h < cache.heads; ++h)
          store_head<T>(value + (t * cache.heads + h) * width, width, cache.at(out, place, h));
      }
    });
  });
}

/// Rows of one head of keys: consecutive tokens of a sequence, and the heads of a group.
struct RowTile {
  int64_t first, rows;
};

class CachedAttention final : public Kernel {
 public:
  explicit CachedAttention(const KernelRequest& request)
      : attrs_(request.attrs),
        keys_(request.operands[1], true),
        values_(request.operands[2], false),
        map_(request.operands[6], keys_.slots),
        loops_(cached_loops(request.operands[1].dtype)) {
    const Dims& query = request.operands[0].shape;
    tokens_ = query[0];
    heads_ = query[1];
    width_ = query[2];
    value_width_ = values_.width();
    group_ = heads_ / keys_.heads;
    pitch_ = std::min(map_.slots, keys_.slots) + kKeyBlock;
    tiles_bytes_ = round_up_to_cache_line(static_cast<size_t>(tokens_ * group_) * sizeof(RowTile));
    scores_bytes_ =
        round_up_to_cache_line(static_cast<size_t>(kCachedRows * pitch_) * sizeof(float));
    worker_bytes_ =
        scores_bytes_ +
        round_up_to_cache_line(static_cast<size_t>(kCachedRows * value_width_) * sizeof(float));
    workers_ = std::min<int64_t>(thread_count(), keys_.heads * tokens_ * group_);
  }

  size_t scratch_bytes() const override {
    return tiles_bytes_ + worker_bytes_ * static_cast<size_t>(workers_);
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const Operands in{
        static_cast<const float*>(operands[0]),   static_cast<std::byte*>(operands[1]),
        static_cast<std::byte*>(operands[2]),     static_cast<const int64_t*>(operands[3]),
        static_cast<const int64_t*>(operands[4]), static_cast<const float*>(operands[5]),
        static_cast<const int64_t*>(operands[6]), static_cast<const float*>(operands[7]),
        static_cast<float*>(results[0])};
    check(in);
    auto* const tiles = reinterpret_cast<RowTile*>(context.scratch);
    const int64_t count = make_tiles(in, tiles);
    int64_t keys = 0;
    for (int64_t t = 0; t < tokens_; ++t) keys += in.lengths[t];
    constexpr int64_t kMinWorkPerThread = 65536;
    const int64_t cost = keys * heads_ * (width_ + value_width_);
    const int64_t workers = std::clamp<int64_t>(cost / kMinWorkPerThread, 1, workers_);
    for_each_task(keys_.heads * count, workers, context.scratch + tiles_bytes_, worker_bytes_,
                  [&](int64_t task, std::byte* scratch) {
                    compute(in, task / count, tiles[task % count], scratch);
                  });
  }

 private:
  struct Operands {
    const float* query;
    std::byte *keys, *values;
    const int64_t *starts, *lengths;
    const float* slopes;    ///< [heads], or null
    const int64_t* blocks;  ///< of a paged cache, or null
    const float* sinks;     ///< [heads], or null
    float* out;
  };

  void check(const Operands& in) const {
    for (int64_t t = 0; t < tokens_; ++t) {
      const int64_t start = in.starts[t], length = in.lengths[t];
      if (length < 0 || start < 0 || start % kKeyBlock != 0 || start > map_.slots - length ||
          length > keys_.slots)
        fail(ErrorCode::kData, "cached_attention: ", length, " keys from slot ", start,
             " are not in a cache of ", std::min(map_.slots, keys_.slots),
             " slots, or do not begin with a block of ", kKeyBlock);
      // Consecutive tokens of a sequence have the same blocks.
      const bool continues = t > 0 && in.starts[t - 1] == start && in.lengths[t - 1] <= length;
      if (map_.paged)
        check_blocks(in.blocks + start / kKeyBlock, continues ? in.lengths[t - 1] : 0, length);
    }
  }

  /// Checks the blocks of the slots from `first` to `last`, but those that are before the block of
  /// `first`.
  void check_blocks(const int64_t* blocks, int64_t first, int64_t last) const {
    for (int64_t b = first / kKeyBlock; b * kKeyBlock < last; ++b)
      checked_block("cached_attention", blocks[b], keys_.slots);
  }

  int64_t make_tiles(const Operands& in, RowTile* tiles) const {
    int64_t count = 0;
    const int64_t rows = tokens_ * group_;
    for (int64_t row = 0; row < rows;) {
      const int64_t start = in.starts[row / group_];
      int64_t end = row + 1;
      while (end < rows && end - row < kCachedRows && in.starts[end / group_] == start) ++end;
      tiles[count++] = {row, end - row};
      row = end;
    }
    return count;
  }

  int64_t first_key(int64_t length) const {
    return attrs_.window > 0 ? std::max<int64_t>(0, length - attrs_.window) : 0;
  }

  void compute(const Operands& in, int64_t head, const RowTile& tile, std::byte* scratch) const {
    auto* const scores = reinterpret_cast<float*>(scratch);
    auto* const sums = reinterpret_cast<float*>(scratch + scores_bytes_);
    CachedScores task{};
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t row = tile.first + r, length = in.lengths[row / group_];
      task.query[r] = in.query + (row / group_ * heads_ + head * group_ + row % group_) * width_;
      first = std::min(first, first_key(length));
      last = std::max(last, length);
    }
    const int64_t start = in.starts[tile.first / group_];
    first -= first % kKeyBlock;
    task.rows = tile.rows;
    task.width = width_;
    task.scale = static_cast<float>(attrs_.scale);
    // The slot from which blocks are counted, and the blocks of a paged cache.
    const int64_t base = map_.paged ? 0 : start + first;
    const int64_t* const table = map_.paged ? in.blocks + (start + first) / kKeyBlock : nullptr;
    task.keys = keys_.at(in.keys, base, head).data;
    task.table = table;
    task.block_bytes = keys_.step_bytes();
    task.blocks = (last - first + kKeyBlock - 1) / kKeyBlock;
    task.scores = scores;
    task.pitch = pitch_;
    loops_.scores(task);
    float factor[kCachedRows];
    const RowLoops<float>& loops = row_loops<float>();
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t length = in.lengths[(tile.first + r) / group_];
      float* const row = scores + r * pitch_;
      const int64_t query_head = head * group_ + (tile.first + r) % group_;
      float* const begin = row + (first_key(length) - first);
      float* const end = row + (length - first);
      cap(begin, end);
      if (in.slopes) {
        const float slope = in.slopes[query_head];
        for (float* score = begin; score != end; ++score)
          *score -= slope * static_cast<float>(end - 1 - score);
      }
      float top = loops.max(begin, end - begin);
      if (in.sinks) top = std::max(top, in.sinks[query_head]);
      double sum = loops.exp_and_sum(begin, begin, end - begin, top);
      if (in.sinks) sum += std::exp(static_cast<double>(in.sinks[query_head]) - top);
      factor[r] = length == 0 ? 0 : static_cast<float>(1 / sum);
      std::fill(row, begin, 0.0F);
      std::fill(end, row + (last - first), 0.0F);
    }
    loops_.sum({scores, pitch_, tile.rows, value_width_, values_.at(in.values, base, head).data,
                table, values_.step_bytes(), last - first, sums});
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t row = tile.first + r;
      loops.scale(sums + r * value_width_,
                  in.out + (row / group_ * heads_ + head * group_ + row % group_) * value_width_,
                  value_width_, factor[r]);
    }
  }

  void cap(float* begin, const float* end) const {
    if (attrs_.softcap <= 0) return;
    const auto limit = static_cast<float>(attrs_.softcap);
    for (; begin != end; ++begin) *begin = limit * std::tanh(*begin / limit);
  }

  CachedAttentionAttrs attrs_;
  CacheShape keys_, values_;
  SlotMap map_;
  CachedLoops loops_;
  int64_t tokens_ = 0, heads_ = 0, width_ = 0, value_width_ = 0, group_ = 1, pitch_ = 0;
  int64_t workers_ = 1;
  size_t tiles_bytes_ = 0, scores_bytes_ = 0, worker_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> prepare_cache_append(const KernelRequest& request) {
  switch (request.operands[0].dtype) {
    case DType::kBF16:
      return append<bfloat16>(request);
    case DType::kI8:
      return append<int8_t>(request);
    default:
      return append<float>(request);
  }
}

std::unique_ptr<Kernel> prepare_cached_attention(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  return std::make_unique<CachedAttention>(request);
}

}  // namespace paddle::cpu
