// Rules of comm.yaml.

#include <algorithm>
#include <numeric>

#include "ops/generated/comm.h"
#include "ops/generated/comm_rules.h"

namespace paddle::rules {
namespace {

/// Larger ones are for messages of the engine, such as those between the stages of a pipeline.
constexpr int64_t kMaxTag = (int64_t{1} << 16) - 1;

void check_ranks(InferContext& c, const std::vector<int64_t>& ranks) {
  c.check(!ranks.empty() && ranks[0] >= 0 &&
              std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end(),
          "ranks must be ascending numbers from 0, not ", str(ranks));
}

void check_message(InferContext& c, int64_t rank, int64_t tag) {
  c.check(rank >= 0, "ranks are numbers from 0, not ", rank);
  c.check(tag >= 0 && tag <= kMaxTag, "tags are numbers from 0 to ", kMaxTag, ", not ", tag);
}

void infer_scratch(InferContext& c, int64_t bytes) {
  c.check(bytes >= 0, "scratch is a number of bytes, not ", bytes);
  c.result(DType::kU8, {Dim(bytes)});
}

void infer_sums(InferContext& c, const std::vector<int64_t>& ranks) {
  check_ranks(c, ranks);
  c.check(c.list_size(0) > 0, "no tensors are given");
  for (size_t i = 0; i < c.list_size(0); ++i) c.result(c.list_type(0, i));
}

template <class A>
void infer_part(InferContext& c, const A& attrs) {
  check_ranks(c, attrs.ranks);
  c.check(attrs.sizes.size() == attrs.ranks.size(), "expected a size for each of the ",
          attrs.ranks.size(), " ranks, found ", attrs.sizes.size());
  c.check(attrs.position >= 0 && attrs.position < static_cast<int64_t>(attrs.ranks.size()),
          "position ", attrs.position, " is not one of the ", attrs.ranks.size(), " ranks");
  Shape shape = c.shape(0);
  const auto axis = static_cast<size_t>(c.axis(attrs.axis, c.rank(0)));
  const Dim all = std::accumulate(attrs.sizes.begin(), attrs.sizes.end(), Dim(0));
  c.check(shape[axis].is_constant() && shape[axis].same(all), "the sizes add up to ", all,
          ", the axis has ", shape[axis]);
  shape[axis] = Dim(attrs.sizes[static_cast<size_t>(attrs.position)]);
  c.result(c.dtype(0), std::move(shape));
}

template <class A>
void infer_whole(InferContext& c, const A& attrs) {
  check_ranks(c, attrs.ranks);
  c.check(attrs.sizes.size() == attrs.ranks.size(), "expected a size for each of the ",
          attrs.ranks.size(), " ranks, found ", attrs.sizes.size());
  Shape shape = c.shape(0);
  const auto axis = static_cast<size_t>(c.axis(attrs.axis, c.rank(0)));
  shape[axis] = std::accumulate(attrs.sizes.begin(), attrs.sizes.end(), Dim(0));
  c.result(c.dtype(0), std::move(shape));
}

}  // namespace

void infer_comm_all_reduce(InferContext& c) {
  infer_sums(c, c.attrs_as<CommAllReduceAttrs>().ranks);
}

void infer_comm_start_all_reduce(InferContext& c) {
  const auto attrs = c.attrs_as<CommStartAllReduceAttrs>();
  infer_sums(c, attrs.ranks);
  infer_scratch(c, attrs.scratch);
}

void infer_comm_wait(InferContext& c) { c.result(c.dtype(0), c.shape(0)); }

void infer_comm_reduce_scatter(InferContext& c) {
  infer_part(c, c.attrs_as<CommReduceScatterAttrs>());
}

void infer_comm_all_gather(InferContext& c) { infer_whole(c, c.attrs_as<CommAllGatherAttrs>()); }

void infer_comm_start_reduce_scatter(InferContext& c) {
  const auto attrs = c.attrs_as<CommStartReduceScatterAttrs>();
  infer_part(c, attrs);
  infer_scratch(c, attrs.scratch);
}

void infer_comm_start_all_gather(InferContext& c) {
  const auto attrs = c.attrs_as<CommStartAllGatherAttrs>();
  infer_whole(c, attrs);
  infer_scratch(c, attrs.scratch);
}

void infer_comm_all_to_all(InferContext& c) {
  const auto attrs = c.attrs_as<CommAllToAllAttrs>();
  check_ranks(c, attrs.ranks);
  c.check(c.rank(0) > 0, "x must have rows, not ", c.type(0));
  c.check(attrs.rows >= 0, "rows must not be negative, found ", attrs.rows);
  const Dim ranks(static_cast<int64_t>(attrs.ranks.size()));
  for (const size_t i : {1u, 2u}) {
    c.check(c.rank(i) == 1, c.op().operands()[i].name, " must have a number for each of the ",
            ranks, " ranks, not ", c.type(i));
    c.require_equal(c.shape(i)[0], ranks, "the numbers of rows and the ranks differ");
  }
  Shape shape = c.shape(0);
  shape[0] = Dim(attrs.rows);
  c.result(c.dtype(0), std::move(shape));
}

void infer_comm_permute(InferContext& c) {
  check_ranks(c, c.attrs_as<CommPermuteAttrs>().ranks);
  c.result(c.dtype(0), c.shape(0));
}

void infer_comm_send(InferContext& c) {
  const auto attrs = c.attrs_as<CommSendAttrs>();
  check_message(c, attrs.rank, attrs.tag);
  c.result(DType::kU8, {Dim(0)});
}

void infer_comm_recv(InferContext& c) {
  const auto attrs = c.attrs_as<CommRecvAttrs>();
  check_message(c, attrs.rank, attrs.tag);
  Shape shape;
  for (const int64_t size : attrs.shape) {
    c.check(size >= 0, "sizes must not be negative, found ", str(attrs.shape));
    shape.emplace_back(size);
  }
  c.result(attrs.dtype, std::move(shape));
}

}  // namespace paddle::rules
