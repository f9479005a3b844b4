// Reductions in a binary tree over the positions in the group: each rank gets the same part of all
// others, sums it in the order of the tree, and sends the sum to all.

#include <algorithm>
#include <bit>

#include "comm/algorithm.h"

namespace paddle::comm {
namespace {

/// Elements [begin, end) of concatenated tensors.
using Range = std::pair<int64_t, int64_t>;

/// The i-th of `parts` parts of a range.
Range part_of_range(Range range, size_t i, size_t parts) {
  const auto [begin, end] = part_of(range.second - range.first, i, parts);
  return {range.first + begin, range.first + end};
}

std::span<const std::byte> source_of(const void* data, DType dtype, int64_t first, int64_t n) {
  return {static_cast<const std::byte*>(data) + size_in_bytes(dtype, first),
          size_in_bytes(dtype, n)};
}

std::span<std::byte> place_of(void* data, DType dtype, int64_t first, int64_t n) {
  return {static_cast<std::byte*>(data) + size_in_bytes(dtype, first), size_in_bytes(dtype, n)};
}

/// parts[0] = the tree over `ranks` arrays that are `stride` bytes apart.
void reduce_parts(std::byte* parts, size_t stride, int64_t count, DType dtype, Reduction reduction,
                  size_t ranks) {
  for (size_t step = 1; step < ranks; step *= 2)
    for (size_t i = 0; i + step < ranks; i += 2 * step)
      combine(parts + i * stride, parts + (i + step) * stride, count, dtype, reduction);
}

/// An all-reduce of concatenated tensors, in stages over groups of peers.
class TreeReduction {
 public:
  TreeReduction(Messages& messages, std::span<const ReduceBuffer> tensors, DType dtype,
                Reduction reduction, std::byte* scratch)
      : messages_(messages),
        tensors_(tensors),
        dtype_(dtype),
        reduction_(reduction),
        scratch_(scratch) {}

  /// The outputs of this rank's range = the sum over the peers: of the inputs, or of the outputs of
  /// an earlier stage. `range_of(i)`: the range of the i-th peer.
  template <class RangeOf>
  void scatter(bool of_outputs, std::span<const int> peers, const RangeOf& range_of) {
    const size_t self = position_in(peers, messages_.rank());
    const auto [begin, end] = range_of(self);
    const size_t mine = size_in_bytes(dtype_, end - begin);
    const auto source = [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
      return source_of(of_outputs ? tensor.out : tensor.in, dtype_, first, n);
    };
    messages_.begin();
    for (size_t i = 0; i < peers.size(); ++i) {
      const auto [from, to] = range_of(i);
      std::byte* place = scratch_ + i * mine;
      if (i == self) {
        for_each_piece(
            tensors_, from, to, [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
              copy_bytes(place, source(tensor, first, n).data(), size_in_bytes(dtype_, n));
              place += size_in_bytes(dtype_, n);
            });
        continue;
      }
      if (from == to) messages_.send(peers[i], {});
      for_each_piece(tensors_, from, to, [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
        messages_.send(peers[i], source(tensor, first, n));
      });
      messages_.receive(peers[i], {place, mine});
    }
    exchange();
    reduce_parts(scratch_, mine, end - begin, dtype_, reduction_, peers.size());
    const std::byte* from = scratch_;
    for_each_piece(tensors_, begin, end, [&](const ReduceBuffer& tensor, int64_t first, int64_t n) {
      copy_bytes(place_of(tensor.out, dtype_, first, n).data(), from, size_in_bytes(dtype_, n));
      from += size_in_bytes(dtype_, n);
    });
  }

  /// Sends the outputs of this rank's range to the peers and receives those of theirs.
  template <class RangeOf>
  void gather(std::span<const int> peers, const RangeOf& range_of) {
    const size_t self = position_in(peers, messages_.rank());
    const auto [begin, end] = range_of(self);
    messages_.begin();
    for (size_t i = 0; i < peers.size(); ++i) {
      if (i == self) continue;
      const auto [first, last] = range_of(i);
      if (begin == end) messages_.send(peers[i], {});
      if (first == last) messages_.receive(peers[i], {});
      for_each_piece(tensors_, begin, end, [&](const ReduceBuffer& tensor, int64_t at, int64_t n) {
        messages_.send(peers[i], place_of(tensor.out, dtype_, at, n));
      });
      for_each_piece(tensors_, first, last, [&](const ReduceBuffer& tensor, int64_t at, int64_t n) {
        messages_.receive(peers[i], place_of(tensor.out, dtype_, at, n));
      });
    }
    exchange();
  }

 private:
  /// The first exchange counts as the call.
  void exchange() {
    messages_.exchange(Exchange::kAllReduce, calls_);
    calls_ = 0;
  }

  Messages& messages_;
  std::span<const ReduceBuffer> tensors_;
  DType dtype_;
  Reduction reduction_;
  std::byte* scratch_;
  int calls_ = 1;
};

/// The largest power of two p for which all runs of p ranks of the group are on one machine each,
/// so that the tree over the group is a tree within each run and one over the runs. 1 if the group
/// is not divided so, or is on one machine.
size_t ranks_of_machines(const Transport& transport, std::span<const int> group) {
  const auto same_machine = [&](size_t begin, size_t end) {
    const int machine = transport.machine(group[begin]);
    return std::all_of(group.begin() + static_cast<std::ptrdiff_t>(begin),
                       group.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](int rank) { return transport.machine(rank) == machine; });
  };
  if (same_machine(0, group.size())) return 1;
  size_t found = 1;
  for (size_t p = 2; p < group.size() && group.size() % p == 0; p *= 2) {
    for (size_t begin = 0; begin < group.size(); begin += p)
      if (!same_machine(begin, begin + p)) return found;
    found = p;
  }
  return found;
}

class Tree final : public CollectiveAlgorithm {
 public:
  void all_reduce(Messages& messages, std::span<const ReduceBuffer> tensors, DType dtype,
                  Reduction reduction, std::span<const int> group, std::byte* scratch) override {
    int64_t count = 0;
    for (const ReduceBuffer& tensor : tensors) count += tensor.count;
    if (group.size() <= 1) {
      for (const ReduceBuffer& tensor : tensors)
        copy_bytes(tensor.out, tensor.in, size_in_bytes(dtype, tensor.count));
      return;
    }
    const Range all{0, count};
    TreeReduction sums(messages, tensors, dtype, reduction, scratch);
    if (size_in_bytes(dtype, count) <= kSmallAllReduce)
      return sums.scatter(false, group, [&](size_t) { return all; });
    const size_t near = ranks_of_machines(*messages.transport(), group);
    const size_t machines = group.size() / near;
    // The sums of a few elements over many machines may need more scratch memory than there is.
    if (near == 1 || count / static_cast<int64_t>(near) < static_cast<int64_t>(machines)) {
      const auto range = [&](size_t i) { return part_of(count, i, group.size()); };
      sums.scatter(false, group, range);
      return sums.gather(group, range);
    }
    // Each rank sums a part over its machine, then over those ranks of the other machines that have
    // the same part, so a fraction of 1 / near of the bytes leaves the machine.
    const size_t self = position_in(group, messages.rank()), machine = self / near;
    const std::span<const int> here = group.subspan(machine * near, near);
    std::vector<int> across;
    for (size_t m = 0; m < machines; ++m) across.push_back(group[m * near + self % near]);
    const auto part = [&](size_t i) { return part_of(count, i, near); };
    const Range mine = part(self % near);
    const auto part_of_mine = [&](size_t i) { return part_of_range(mine, i, machines); };
    sums.scatter(false, here, part);
    sums.scatter(true, across, part_of_mine);
    sums.gather(across, part_of_mine);
    sums.gather(here, part);
  }

  void reduce_scatter(Messages& messages, const void* in, void* out,
                      std::span<const int64_t> counts, DType dtype, Reduction reduction,
                      std::span<const int> group, std::byte* scratch) override {
    const size_t self = position_in(group, messages.rank());
    const size_t mine = size_in_bytes(dtype, counts[self]);
    if (group.size() <= 1) return copy_bytes(out, in, mine);
    messages.begin();
    const auto* source = static_cast<const std::byte*>(in);
    for (size_t i = 0; i < group.size(); ++i) {
      const size_t bytes = size_in_bytes(dtype, counts[i]);
      if (i == self) {
        copy_bytes(scratch + i * mine, source, mine);
      } else {
        messages.send(group[i], {source, bytes});
        messages.receive(group[i], {scratch + i * mine, mine});
      }
      source += bytes;
    }
    messages.exchange(Exchange::kReduceScatter);
    reduce_parts(scratch, mine, counts[self], dtype, reduction, group.size());
    copy_bytes(out, scratch, mine);
  }

  void all_gather(Messages& messages, const void* in, void* out, std::span<const size_t> bytes,
                  std::span<const int> group) override {
    messages.begin();
    auto* place = static_cast<std::byte*>(out);
    for (size_t i = 0; i < group.size(); ++i) {
      if (group[i] == messages.rank()) {
        copy_bytes(place, in, bytes[i]);
        for (const int peer : group)
          if (peer != messages.rank()) messages.send(peer, {place, bytes[i]});
      } else {
        messages.receive(group[i], {place, bytes[i]});
      }
      place += bytes[i];
    }
    if (group.size() > 1) messages.exchange(Exchange::kAllGather);
  }
};

}  // namespace

std::unique_ptr<CollectiveAlgorithm> make_tree() { return std::make_unique<Tree>(); }

}  // namespace paddle::comm
