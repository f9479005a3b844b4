// Rules of decoding.yaml.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/sequence.h"
#include "ops/generated/sequence_rules.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"

namespace paddle::rules {

void infer_text_viterbi_decode(InferContext& c) {
  c.check(c.rank(0) == 3, "potentials must be [batch, steps, tags], not ", c.type(0));
  c.check(c.rank(1) == 2, "transition_params must be a matrix, not ", c.type(1));
  for (size_t i = 0; i < 2; ++i)
    c.require_equal(c.shape(1)[i], c.shape(0)[2], "transition_params must be [tags, tags]");
  const bool ends = c.attrs_as<TextViterbiDecodeAttrs>().include_bos_eos_tag;
  c.check(c.shape(0)[2].less(ends ? 2 : 1) != true, "there must be ", ends ? 2 : 1,
          " tags or more, not ", c.shape(0)[2]);
  c.check(c.rank(2) == 1, "lengths must be 1-D, not ", c.type(2));
  c.require_equal(c.shape(2)[0], c.shape(0)[0], "lengths and potentials differ in their batch");
  c.result(c.dtype(0), {c.shape(0)[0]});
  c.result(DType::kI64, {c.shape(0)[0], c.run_time_dim()});
}

void infer_gather_tree(InferContext& c) {
  c.check(c.dtype(0) == c.dtype(1), "ids and parents must have one dtype, not ", c.type(0), " and ",
          c.type(1));
  c.check(c.rank(0) == 3 && c.rank(1) == 3, "ids and parents must be [steps, batch, beams], not ",
          c.type(0), " and ", c.type(1));
  for (size_t i = 0; i < 3; ++i)
    c.require_equal(c.shape(0)[i], c.shape(1)[i], "ids and parents differ in shape");
  c.result(c.dtype(0), c.shape(0));
}

void infer_edit_distance(InferContext& c) {
  for (size_t i = 0; i < 2; ++i)
    c.check(c.rank(i) == 2, c.op().operands()[i].name, " must be [batch, length], not ", c.type(i));
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "input and label differ in their batch");
  for (size_t i = 2; i < 4; ++i)
    if (c.has(i))
      c.require_equal(element_count(std::span<const Dim>(c.shape(i))), c.shape(0)[0],
                      str(c.op().operands()[i].name, " must have a number for each sequence"));
  c.result(DType::kF32, {c.shape(0)[0], Dim(1)});
  c.result(DType::kI64, {Dim(1)});
}

Tensors decompose_beam_search(CallContext& c) {
  const auto a = c.attrs_as<BeamSearchAttrs>();
  constexpr const char* kName = "beam_search";
  const Tensor &pre_ids = c.operand(0), &pre_scores = c.operand(1), &scores = c.operand(3);
  if (a.beam_size < 1) reject(kName, "beam_size must be positive, not ", a.beam_size);
  if (scores.ndim() != 2) reject(kName, "scores must be [beams, candidates], not ", scores.type());
  if (a.level != 0) reject(kName, "level must be 0, not ", a.level);
  const Dim rows = scores.dim(0), candidates = scores.dim(1);
  if (modulo(rows, a.beam_size).constant().value_or(0) != 0)
    reject(kName, "the ", rows, " beams are not groups of ", a.beam_size);
  if (element_count(std::span<const Dim>(pre_ids.shape())).equals(rows) == false ||
      element_count(std::span<const Dim>(pre_scores.shape())).equals(rows) == false)
    reject(kName, "pre_ids and pre_scores must have a number for each beam, not ", pre_ids.type(),
           " and ", pre_scores.type());
  Tensor ids =
      ops::expand(ops::unsqueeze(range_of(candidates, DType::kI64), {0}), {rows, candidates});
  if (c.has(2)) {
    ids = ops::cast(c.operand(2), DType::kI64);
    if (!same_shape(ids.shape(), scores.shape()))
      reject(kName, "ids ", ids.type(), " and scores ", scores.type(), " differ in shape");
  }
  const Tensor before = ops::reshape(pre_scores, {rows, Dim(1)});
  const Tensor total = a.is_accumulated ? scores : before + ops::log(scores);
  // An ended beam has one continuation, in its first column.
  const Tensor ended = ops::reshape(ops::equal(pre_ids, integer(a.end_id)), {rows, Dim(1)});
  const Tensor first =
      ops::equal(ops::unsqueeze(range_of(candidates, DType::kI64), {0}), integer(0));
  const Tensor alone = ops::where(first, before, number(-INFINITY));
  const Tensor all = ops::where(ended, alone, total);
  const Tensor tokens = ops::where(ended, integer(a.end_id), ids);
  const Dim groups = floor_divide(rows, a.beam_size);
  const Shape shape = {groups, candidates * a.beam_size};
  const Tensors best = ops::topk(ops::reshape(all, shape), a.beam_size, 1);
  const Tensor at = best[1];
  const Tensor origin = ops::unsqueeze(range_of(groups, DType::kI64), {1}) * integer(a.beam_size);
  const Tensor parent = origin + ops::floor_divide(at, dim_value(candidates, DType::kI64));
  const Shape column = {rows, Dim(1)};
  Tensors out = {
      ops::cast(ops::reshape(ops::gather_along(ops::reshape(tokens, shape), at, 1), column),
                pre_ids.dtype()),
      ops::reshape(best[0], column)};
  if (a.return_parent_idx) out.push_back(ops::reshape(parent, {rows}));
  return out;
}

}  // namespace paddle::rules
