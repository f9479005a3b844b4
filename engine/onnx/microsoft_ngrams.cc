// Operators of com.microsoft that hash the n-grams which end at each token, to look them up in
// tables of embeddings ("Conditional Memory via Scalable Lookup", Cheng et al. 2026).

#include "onnx/operators.h"

namespace paddle::onnx {
namespace {

/// Where the inputs stand that the two forms order differently.
struct Places {
  size_t past, offsets, end, segments;
};

class Grams {
 public:
  Grams(const NodeCall& c, const Places& at) : c_(c), at_(at) {
    longest_ = c.integer("max_ngram_size", 0);
    heads_ = c.integer("n_head_per_ngram", 0);
    c.check(longest_ >= 2 && longest_ <= 64, "max_ngram_size is ", longest_);
    c.check(heads_ >= 1 && heads_ <= 4096, "n_head_per_ngram is ", heads_);
    const DType dtype = c.tensor(0).dtype();
    c.check(dtype == DType::kI64 || dtype == DType::kI32, "the tokens are ", paddle::text(dtype));
    wide_ = dtype == DType::kI64 ? DType::kU64 : DType::kU32;
    c.same_types({0, 1});
    c.same_types({0, 2});
    const auto vector = [&](size_t i, int64_t least) {
      c.check(c.tensor(i).ndim() == 1 && known_size(c.tensor(i), 0) >= least, "input ", i, " is ",
              c.tensor(i).type(), ", not a vector of ", least);
    };
    vector(1, longest_);
    vector(2, (longest_ - 1) * heads_);
    if (c.has(at.offsets)) vector(at.offsets, (longest_ - 1) * heads_);
    fill_ = c.has(at.end) ? ops::reshape(c.tensor(at.end), Shape())
                          : integer_scalar(c.integer("pad_id", 0), dtype);
  }

  int64_t before() const { return longest_ - 1; }  ///< tokens that a gram may reach back
  const Tensor& fill() const { return fill_; }

  /// The tokens [batch, before()] that stood before these calls' own.
  Tensor past(const Dim& batch) const {
    if (!c_.has(at_.past)) return ops::expand(fill_, {batch, Dim(before())});
    const Tensor& given = c_.tensor(at_.past);
    c_.check(given.ndim() == 2 && given.dim(1).equals(before()).value_or(true), "past_ids is ",
             given.type());
    return given;
  }

  /// The hashes [..., heads of all n-grams]: `tokens[k]` are those k before each, and `breaks[k]`,
  /// where it is defined, tells where a border lies between those and the ones behind.
  Tensor hashes(const Tensors& tokens, const Tensors& breaks) const {
    const DType dtype = tokens[0].dtype();
    const bool ends = c_.flag("reset_on_eos", false) && c_.has(at_.end);
    const auto factor = [&](int64_t k) {
      return ops::cast(ops::reshape(part(c_.tensor(1), 0, k, k + 1), Shape()), wide_);
    };
    Tensor mixed = ops::cast(tokens[0], wide_) * factor(0), border;
    Tensors out;
    for (int64_t k = 1; k < longest_; ++k) {
      const auto i = static_cast<size_t>(k);
      Tensor token = tokens[i];
      const auto add = [&](const Tensor& more) {
        border = border ? ops::logical_or(border, more) : more;
      };
      if (ends) add(ops::equal(token, fill_));
      if (breaks[i]) add(breaks[i]);
      if (border) token = ops::where(border, fill_, token);
      mixed = ops::bitwise_xor(mixed, ops::cast(token, wide_) * factor(k));
      const auto own = [&](size_t input) {
        return part(c_.tensor(input), 0, (k - 1) * heads_, k * heads_);
      };
      Tensor hash = ops::remainder(ops::unsqueeze(ops::cast(mixed, dtype), {-1}), own(2));
      if (c_.has(at_.offsets))
        hash = ops::cast(ops::cast(hash, wide_) + ops::cast(own(at_.offsets), wide_), dtype);
      out.push_back(hash);
    }
    return out.size() == 1 ? out[0] : ops::concat(out, -1);
  }

 private:
  const NodeCall& c_;
  Places at_;
  int64_t longest_ = 0, heads_ = 0;
  DType wide_ = DType::kU64;  ///< without a sign, so that products wrap
  Tensor fill_;
};

Values ngram_hashes(NodeCall& c) {
  const Grams grams(c, {.past = 3, .offsets = 4, .end = 5, .segments = 6});
  const Tensor& ids = c.tensor(0);
  c.check(ids.ndim() == 2, "the tokens must be [batch, steps], not ", ids.type());
  const Dim steps = ids.dim(1);
  const int64_t before = grams.before();
  const Tensor all = ops::concat({grams.past(ids.dim(0)), ids}, 1);
  Tensors tokens, breaks;
  Tensor changes;  // a border before each token; none before the first, which a past may precede
  if (c.has(6)) {
    const Tensor& segments = c.tensor(6);
    const Tensor first = ops::full({ids.dim(0), Dim(before + 1)}, false, DType::kBool);
    changes = ops::concat(
        {first, ops::not_equal(part(segments, 1, 1, steps), part(segments, 1, 0, steps - 1))}, 1);
  }
  for (int64_t k = 0; k <= before; ++k) {
    tokens.push_back(part(all, 1, before - k, before - k + steps));
    breaks.push_back(changes && k > 0 ? part(changes, 1, before - k + 1, before - k + 1 + steps)
                                      : Tensor());
  }
  return {grams.hashes(tokens, breaks), part(all, 1, steps, steps + before)};
}

/// The same for sequences of any lengths, one behind the other: input 3 tells where they begin and
/// end.
Values packed_ngram_hashes(NodeCall& c) {
  const Grams grams(c, {.past = 4, .offsets = 5, .end = 6, .segments = 7});
  const Tensor& ids = c.tensor(0);
  c.check(ids.ndim() == 1, "the tokens must be a vector, not ", ids.type());
  const auto ends = c.known_integers(3);
  const int64_t total = known_size(ids, 0), before = grams.before();
  const auto batch = static_cast<int64_t>(ends.size()) - 1;
  c.check(batch >= 1 && ends.front() == 0 && ends.back() == total,
          "cumulative_sequence_length does "
          "not lead from 0 to ",
          total);
  for (size_t i = 1; i < ends.size(); ++i)
    c.check(ends[i] > ends[i - 1], "the sequence ", i - 1, " has no tokens");
  // Each sequence behind its past: sequence s begins at place ends[s] + s * before.
  const auto rows = [&](const Tensor& past, const Tensor& own) {
    Tensors parts;
    for (int64_t s = 0; s < batch; ++s) {
      parts.push_back(ops::reshape(part(past, 0, s, s + 1), Shape{Dim(before)}));
      parts.push_back(part(own, 0, ends[static_cast<size_t>(s)], ends[static_cast<size_t>(s) + 1]));
    }
    return ops::concat(parts, 0);
  };
  std::vector<int64_t> places, last;
  for (int64_t s = 0; s < batch; ++s) {
    const int64_t shift = (s + 1) * before;
    for (int64_t t = ends[static_cast<size_t>(s)]; t < ends[static_cast<size_t>(s) + 1]; ++t)
      places.push_back(t + shift);
    for (int64_t k = before; k > 0; --k) last.push_back(places.back() + 1 - k);
  }
  const Tensor all = rows(grams.past(batch), ids);
  const auto at = [&](const Tensor& from, int64_t back) {
    std::vector<int64_t> moved = places;
    for (int64_t& place : moved) place -= back;
    return ops::index_select(from, integer_vector(moved), 0);
  };
  Tensor segments;
  if (c.has(7)) {
    const Tensor first = ops::reshape(
        ops::index_select(c.tensor(7), integer_vector({ends.begin(), ends.end() - 1}), 0),
        {Dim(batch), Dim(1)});
    segments =
        rows(c.has(8) ? c.tensor(8) : ops::expand(first, {Dim(batch), Dim(before)}), c.tensor(7));
  }
  Tensors tokens, breaks;
  for (int64_t k = 0; k <= before; ++k) {
    tokens.push_back(at(all, k));
    breaks.push_back(segments && k > 0 ? ops::not_equal(at(segments, k), at(segments, k - 1))
                                       : Tensor());
  }
  const auto trailing = [&](const Tensor& from) {
    return ops::reshape(ops::index_select(from, integer_vector(last), 0),
                        {Dim(batch), Dim(before)});
  };
  Values out = {grams.hashes(tokens, breaks), trailing(all)};
  if (c.wants(2)) {
    c.check(c.has(7), "present_segment_ids needs segment_ids");
    out.emplace_back(trailing(segments));
  } else {
    out.emplace_back();
  }
  const int64_t room = c.integer("state_update_capacity", 0);
  c.check(room >= 0 && room <= 8, "state_update_capacity is ", room);
  if (!c.wants(3) || room == 0) return out;
  // The tokens that stand before what follows each of the first ones.
  const auto counts = c.known_integers(9);
  c.check(static_cast<int64_t>(counts.size()) == batch, "there are ", counts.size(), " counts for ",
          batch, " sequences");
  std::vector<int64_t> from, used;
  for (int64_t s = 0; s < batch; ++s) {
    const auto i = static_cast<size_t>(s);
    const int64_t begin = ends[i] + (s + 1) * before, length = ends[i + 1] - ends[i];
    for (int64_t n = 0; n < room; ++n)
      for (int64_t k = before; k > 0; --k) {
        const bool taken = n < std::min(counts[i], length);
        from.push_back(taken ? begin + n + 1 - k : 0);
        used.push_back(taken ? 1 : 0);
      }
  }
  const Tensor states = ops::where(integer_vector(used, DType::kBool),
                                   ops::index_select(all, integer_vector(from), 0),
                                   integer_scalar(c.integer("pad_id", 0), ids.dtype()));
  out.emplace_back(ops::reshape(states, {Dim(batch), Dim(room), Dim(before)}));
  return out;
}

constexpr Operator kOperators[] = {
    {"NGramHashMapping", 1, ngram_hashes},
    {"VarlenNGramHashMapping", 1, packed_ngram_hashes},
};

}  // namespace

std::span<const Operator> microsoft_ngram_operators() { return kOperators; }

}  // namespace paddle::onnx
