#include "paddle/communicator.h"

#include <algorithm>

#include "api/access.h"
#include "comm/array_collectives.h"

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

/// With an axis of size 1 in front.
paddle::Array as_row(paddle::Array array) {
  array.shape.insert(array.shape.begin(), 1);
  array.strides.insert(array.strides.begin(), array.size());
  return array;
}

paddle::Array without_axis(paddle::Array array) {
  array.shape.erase(array.shape.begin());
  array.strides.erase(array.strides.begin());
  return array;
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
    auto impl = std::make_unique<Impl>();
    impl->run = comm::join_run();
    return Communicator(std::move(impl));
  });
}

int Communicator::rank() const noexcept { return impl_->run->rank(); }
int Communicator::size() const noexcept { return impl_->run->size(); }

void Communicator::barrier() {
  translated([&] { impl_->run->barrier(); });
}

Array Communicator::all_reduce(const Array& x, Reduction reduction, const std::vector<int>& group) {
  return translated([&] {
    return Access::handle(comm::all_reduce(*impl_->run, Access::engine(x),
                                           engine_reduction(reduction),
                                           impl_->group_of(group, "all_reduce")));
  });
}

Array Communicator::broadcast(const Array& x, int root, const std::vector<int>& given) {
  return translated([&] {
    const std::vector<int> group = impl_->group_of(given, "broadcast");
    const auto source = std::find(group.begin(), group.end(), root);
    if (source == group.end())
      fail(paddle::ErrorCode::kUsage, "broadcast: rank ", root, " is not in the group ", group);
    std::vector<int64_t> rows(group.size(), 0);
    rows[static_cast<size_t>(source - group.begin())] = 1;
    return Access::handle(
        without_axis(comm::all_gather(*impl_->run, as_row(Access::engine(x)), rows, group)));
  });
}

Array Communicator::all_gather(const Array& x, const std::vector<int>& given) {
  return translated([&] {
    const std::vector<int> group = impl_->group_of(given, "all_gather");
    const std::vector<int64_t> rows(group.size(), 1);
    return Access::handle(comm::all_gather(*impl_->run, as_row(Access::engine(x)), rows, group));
  });
}

Array Communicator::reduce_scatter(const Array& x, Reduction reduction,
                                   const std::vector<int>& group) {
  return translated([&] {
    return Access::handle(comm::reduce_scatter(*impl_->run, Access::engine(x),
                                               engine_reduction(reduction),
                                               impl_->group_of(group, "reduce_scatter")));
  });
}

Array Communicator::all_to_all(const Array& x, const std::vector<int>& given) {
  return translated([&] {
    const std::vector<int> group = impl_->group_of(given, "all_to_all");
    const paddle::Array& in = Access::engine(x);
    const auto parts = static_cast<int64_t>(group.size());
    if (in.shape.empty() || in.shape[0] % parts != 0)
      fail(paddle::ErrorCode::kUsage, "all_to_all: the first axis of ", in.shape,
           " does not divide into ", parts, " parts");
    const std::vector<int64_t> rows(group.size(), in.shape[0] / parts);
    return Access::handle(comm::all_to_all(*impl_->run, in, rows, rows, group));
  });
}

void Communicator::send(const Array& x, int to, int tag) {
  translated([&] {
    impl_->require_other(to, "send");
    const paddle::Array& array = Access::engine(x);
    impl_->run->isend(to, static_cast<uint32_t>(tag),
                      {comm::memory_of(array), comm::bytes_of(array)});
  });
}

Array Communicator::recv(DType dtype, const std::vector<int64_t>& shape, int from, int tag) {
  return translated([&] {
    impl_->require_other(from, "recv");
    paddle::Array out = Access::engine(Array(dtype, shape));
    impl_->run->recv(from, static_cast<uint32_t>(tag), {comm::memory_of(out), comm::bytes_of(out)});
    return Access::handle(std::move(out));
  });
}

}  // namespace paddle::v0
