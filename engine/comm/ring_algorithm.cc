// Reductions around a ring: in each round a rank sends one part to the next rank and receives one
// from the previous rank. After n - 1 rounds it has the sum of one part; n - 1 more rounds pass the
// sums on.

#include <algorithm>

#include "comm/algorithm.h"

namespace paddle::comm {
namespace {

/// The place of a rank among those of a group in a circle.
struct Ring {
  std::span<const int> group;
  size_t self = 0;

  Ring(std::span<const int> ranks, int rank) : group(ranks), self(position_in(ranks, rank)) {}
  size_t size() const { return group.size(); }
  int next() const { return group[(self + 1) % size()]; }
  int previous() const { return group[(self + size() - 1) % size()]; }
  /// The position `back` places before this one.
  size_t before(size_t back) const { return (self + 2 * size() - back) % size(); }
};

class RingAlgorithm final : public CollectiveAlgorithm {
 public:
  void all_reduce(Messages& messages, std::span<const ReduceBuffer> tensors, DType dtype,
                  Reduction reduction, std::span<const int> group, std::byte* scratch) override {
    for (const ReduceBuffer& tensor : tensors)
      copy_bytes(tensor.out, tensor.in, size_in_bytes(dtype, tensor.count));
    if (group.size() <= 1) return;
    int64_t count = 0;
    for (const ReduceBuffer& tensor : tensors) count += tensor.count;
    const Ring ring(group, messages.rank());
    const auto part = [&](size_t i) { return part_of(count, i, ring.size()); };
    int calls = 1;
    const auto exchange = [&] {
      messages.exchange(Exchange::kAllReduce, calls);
      calls = 0;
    };
    const auto send = [&](size_t i) {
      const auto [begin, end] = part(i);
      if (begin == end) messages.send(ring.next(), {});
      for_each_piece(tensors, begin, end, [&](const ReduceBuffer& tensor, int64_t at, int64_t n) {
        messages.send(ring.next(), bytes_at(tensor.out, dtype, at, n));
      });
    };
    for (size_t round = 1; round < ring.size(); ++round) {
      const auto [begin, end] = part(ring.before(round + 1));
      messages.begin();
      send(ring.before(round));
      messages.receive(ring.previous(), {scratch, size_in_bytes(dtype, end - begin)});
      exchange();
      const std::byte* from = scratch;
      for_each_piece(tensors, begin, end, [&](const ReduceBuffer& tensor, int64_t at, int64_t n) {
        combine(bytes_at(tensor.out, dtype, at, n).data(), from, n, dtype, reduction);
        from += size_in_bytes(dtype, n);
      });
    }
    for (size_t round = 0; round + 1 < ring.size(); ++round) {
      const auto [begin, end] = part(ring.before(round + 1));
      messages.begin();
      send(ring.before(round));
      if (begin == end) messages.receive(ring.previous(), {});
      for_each_piece(tensors, begin, end, [&](const ReduceBuffer& tensor, int64_t at, int64_t n) {
        messages.receive(ring.previous(), bytes_at(tensor.out, dtype, at, n));
      });
      exchange();
    }
  }

  void reduce_scatter(Messages& messages, const void* in, void* out,
                      std::span<const int64_t> counts, DType dtype, Reduction reduction,
                      std::span<const int> group, std::byte* scratch) override {
    const Ring ring(group, messages.rank());
    const auto part = [&](size_t i) {
      int64_t before = 0;
      for (size_t k = 0; k < i; ++k) before += counts[k];
      return std::span(static_cast<const std::byte*>(in) + size_in_bytes(dtype, before),
                       size_in_bytes(dtype, counts[i]));
    };
    if (ring.size() <= 1) return copy_bytes(out, part(0).data(), part(0).size());
    // Partial sums of parts that are larger than this rank's own need more room than the scratch
    // memory has, which `reduce_scatter_scratch` computes from the latter.
    if (std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) != counts.end())
      return tree_->reduce_scatter(messages, in, out, counts, dtype, reduction, group, scratch);
    const size_t bytes = part(0).size();
    std::byte *sum = scratch, *arriving = scratch + bytes;
    copy_bytes(sum, part(ring.before(1)).data(), bytes);
    for (size_t round = 1; round < ring.size(); ++round) {
      messages.begin();
      messages.send(ring.next(), {sum, bytes});
      messages.receive(ring.previous(), {arriving, bytes});
      messages.exchange(Exchange::kReduceScatter, round == 1 ? 1 : 0);
      combine(arriving, part(ring.before(round + 1)).data(), counts[0], dtype, reduction);
      std::swap(sum, arriving);
    }
    copy_bytes(out, sum, bytes);
  }

  void all_gather(Messages& messages, const void* in, void* out, std::span<const size_t> bytes,
                  std::span<const int> group) override {
    const Ring ring(group, messages.rank());
    const auto place = [&](size_t i) {
      size_t before = 0;
      for (size_t k = 0; k < i; ++k) before += bytes[k];
      return std::span(static_cast<std::byte*>(out) + before, bytes[i]);
    };
    copy_bytes(place(ring.self).data(), in, bytes[ring.self]);
    for (size_t round = 0; round + 1 < ring.size(); ++round) {
      messages.begin();
      messages.send(ring.next(), place(ring.before(round)));
      messages.receive(ring.previous(), place(ring.before(round + 1)));
      messages.exchange(Exchange::kAllGather, round == 0 ? 1 : 0);
    }
  }

 private:
  static std::span<std::byte> bytes_at(void* data, DType dtype, int64_t first, int64_t n) {
    return {static_cast<std::byte*>(data) + size_in_bytes(dtype, first), size_in_bytes(dtype, n)};
  }

  /// Of parts of several sizes.
  std::unique_ptr<CollectiveAlgorithm> tree_ = make_tree();
};

}  // namespace

std::unique_ptr<CollectiveAlgorithm> make_ring() { return std::make_unique<RingAlgorithm>(); }

}  // namespace paddle::comm
