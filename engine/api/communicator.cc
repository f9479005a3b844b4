#include "paddle/communicator.h"

#include <algorithm>

#include "api/access.h"
#include "comm/communicator.h"
#include "comm/join.h"
#include "comm/membership.h"

namespace paddle::v0 {
namespace {

comm::Reduction engine_reduction(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMax:
      return comm::Reduction::kMax;
    case Reduction::kMin:
      return comm::Reduction::kMin;
    case Reduction::kSum:
      break;
  }
  return comm::Reduction::kSum;
}

size_t bytes_of(const paddle::Array& array) {
  return static_cast<size_t>(storage_bytes(array.dtype, array.size()));
}

paddle::Array scratch_of(size_t bytes) {
  return paddle::Array::empty(paddle::DType::kU8, {static_cast<int64_t>(bytes)});
}

std::byte* memory_of(const paddle::Array& array) { return static_cast<std::byte*>(array.raw()); }

/// The shape of one of `parts` equal parts of the first axis.
Dims part_of(const paddle::Array& array, size_t parts, const char* what) {
  Dims shape = array.shape;
  if (shape.empty() || shape[0] % static_cast<int64_t>(parts) != 0)
    fail(paddle::ErrorCode::kUsage, what, ": the first axis of ", shape, " does not divide into ",
         parts, " parts");
  shape[0] /= static_cast<int64_t>(parts);
  return shape;
}

}  // namespace

struct Communicator::Impl {
  std::unique_ptr<comm::Communicator> run;

  /// The group of a call: all ranks if none are given.
  std::vector<int> group_of(const std::vector<int>& given, const char* what) const {
    if (given.empty()) return run->all();
    const bool ascends =
        std::adjacent_find(given.begin(), given.end(), std::greater_equal<>()) == given.end();
    if (!ascends || given.front() < 0 || given.back() >= run->size() ||
        !std::binary_search(given.begin(), given.end(), run->rank()))
      fail(paddle::ErrorCode::kUsage, what, ": expected ascending ranks below ", run->size(),
           " with rank ", run->rank(), " among them, found ", given);
    return given;
  }
  void require_other(int rank, const char* what) const {
    if (rank < 0 || rank >= run->size() || rank == run->rank())
      fail(paddle::ErrorCode::kUsage, what, ": expected another rank below ", run->size(),
           ", found ", rank);
  }
};

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;

Communicator Communicator::join() {
  return translated([] {
    const comm::Membership membership = comm::membership_from_environment();
    auto impl = std::make_unique<Impl>();
    impl->run = membership.size == 1 ? std::make_unique<comm::Communicator>()
                                     : std::make_unique<comm::Communicator>(comm::join(
                                           membership, comm::JoinOptions::from_environment()));
    return Communicator(std::move(impl));
  });
}

int Communicator::rank() const noexcept { return impl_->run->rank(); }
int Communicator::size() const noexcept { return impl_->run->size(); }

void Communicator::barrier() {
  translated([&] { impl_->run->barrier(); });
}

Array Communicator::all_reduce(const Array& x, Reduction reduction, const std::vector<int>& given) {
  return translated([&] {
    const std::vector<int> group = impl_->group_of(given, "all_reduce");
    const paddle::Array& in = Access::engine(x);
    paddle::Array out = paddle::Array::empty(in.dtype, in.shape);
    const paddle::Array scratch =
        scratch_of(comm::all_reduce_scratch(in.dtype, in.size(), group.size()));
    const comm::ReduceBuffer buffer{in.raw(), out.raw(), in.size()};
    impl_->run->collectives().all_reduce({&buffer, 1}, in.dtype, engine_reduction(reduction),
                                         {.group = group, .scratch = memory_of(scratch)});
    return Access::handle(std::move(out));
  });
}

Array Communicator::broadcast(const Array& x, int root, const std::vector<int>& given) {
  return translated([&] {
    const std::vector<int> group = impl_->group_of(given, "broadcast");
    const auto source = std::find(group.begin(), group.end(), root);
    if (source == group.end())
      fail(paddle::ErrorCode::kUsage, "broadcast: rank ", root, " is not in the group ", group);
    const paddle::Array& in = Access::engine(x);
    paddle::Array out = paddle::Array::empty(in.dtype, in.shape);
    std::vector<size_t> bytes(group.size(), 0);
    bytes[static_cast<size_t>(source - group.begin())] = bytes_of(in);
    impl_->run->all_gather(in.raw(), out.raw(), bytes, group);
    return Access::handle(std::move(out));
  });
}

Array Communicator::all_gather(const Array& x, const std::vector<int>& given) {
  return translated([&] {
    const std::vector<int> group = impl_->group_of(given, "all_gather");
    const paddle::Array& in = Access::engine(x);
    Dims shape = in.shape;
    shape.insert(shape.begin(), static_cast<int64_t>(group.size()));
    paddle::Array out = paddle::Array::empty(in.dtype, shape);
    const std::vector<size_t> bytes(group.size(), bytes_of(in));
    impl_->run->all_gather(in.raw(), out.raw(), bytes, group);
    return Access::handle(std::move(out));
  });
}

Array Communicator::reduce_scatter(const Array& x, Reduction reduction,
                                   const std::vector<int>& given) {
  return translated([&] {
    const std::vector<int> group = impl_->group_of(given, "reduce_scatter");
    const paddle::Array& in = Access::engine(x);
    paddle::Array out = paddle::Array::empty(in.dtype, part_of(in, group.size(), "reduce_scatter"));
    const std::vector<int64_t> counts(group.size(), out.size());
    const paddle::Array scratch =
        scratch_of(comm::reduce_scatter_scratch(bytes_of(out), group.size()));
    impl_->run->collectives().reduce_scatter(in.raw(), out.raw(), counts, in.dtype,
                                             engine_reduction(reduction),
                                             {.group = group, .scratch = memory_of(scratch)});
    return Access::handle(std::move(out));
  });
}

Array Communicator::all_to_all(const Array& x, const std::vector<int>& given) {
  return translated([&] {
    const std::vector<int> group = impl_->group_of(given, "all_to_all");
    const paddle::Array& in = Access::engine(x);
    static_cast<void>(part_of(in, group.size(), "all_to_all"));
    paddle::Array out = paddle::Array::empty(in.dtype, in.shape);
    const std::vector<size_t> bytes(group.size(), bytes_of(in) / group.size());
    impl_->run->all_to_all(in.raw(), bytes, out.raw(), bytes, group);
    return Access::handle(std::move(out));
  });
}

void Communicator::send(const Array& x, int to, int tag) {
  translated([&] {
    impl_->require_other(to, "send");
    const paddle::Array& array = Access::engine(x);
    impl_->run->isend(to, static_cast<uint32_t>(tag), {memory_of(array), bytes_of(array)});
  });
}

Array Communicator::recv(DType dtype, const std::vector<int64_t>& shape, int from, int tag) {
  return translated([&] {
    impl_->require_other(from, "recv");
    paddle::Array out = Access::engine(Array(dtype, shape));
    impl_->run->recv(from, static_cast<uint32_t>(tag), {memory_of(out), bytes_of(out)});
    return Access::handle(std::move(out));
  });
}

}  // namespace paddle::v0
