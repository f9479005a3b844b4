// N-gram hashing operators of com.microsoft for embedding tables indexed by the n-grams that end at
// each token ("Conditional Memory via Scalable Lookup", Cheng et al. 2026).

#include <algorithm>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Indices of the inputs that the two operators order differently.
struct InputIndices {
  size_t past, offsets, end;
};

class NGrams {
 public:
  NGrams(const NodeCall& c, const InputIndices& at) : c_(c), at_(at) {
    longest_ = c.int_attr("max_ngram_size", 0);
    heads_ = c.int_attr("n_head_per_ngram", 0);
    c.check(longest_ >= 2 && longest_ <= 64, "max_ngram_size is ", longest_);
    c.check(heads_ >= 1 && heads_ <= 4096, "n_head_per_ngram is ", heads_);
    const DType dtype = c.tensor(0).dtype();
    c.check(dtype == DType::kI64 || dtype == DType::kI32, "the tokens are ", paddle::text(dtype));
    unsigned_dtype_ = dtype == DType::kI64 ? DType::kU64 : DType::kU32;
    c.check_same_dtype({0, 1});
    c.check_same_dtype({0, 2});
    const auto vector = [&](size_t i, int64_t least) {
      c.check(c.tensor(i).ndim() == 1 && constant_dim(c.tensor(i), 0) >= least, "input ", i, " is ",
              c.tensor(i).type(), ", not a vector of ", least);
    };
    vector(1, longest_);
    vector(2, (longest_ - 1) * heads_);
    if (c.has_input(at.offsets)) vector(at.offsets, (longest_ - 1) * heads_);
    if (c.value(2).is_concrete())
      for (const int64_t size : c.constant_ints(2))
        c.check(size > 0, "a table of vocab_sizes has ", size, " rows");
    fill_ = c.has_input(at.end) ? ops::reshape(c.tensor(at.end), Shape())
                                : int_scalar(c.int_attr("pad_id", 0), dtype);
  }

  int64_t before() const { return longest_ - 1; }  ///< context tokens of the longest n-gram

  /// Context tokens [batch, before()] from previous calls.
  Tensor past(const Dim& batch) const {
    if (!c_.has_input(at_.past)) return ops::expand(fill_, {batch, Dim(before())});
    const Tensor& given = c_.tensor(at_.past);
    c_.check(given.ndim() == 2 && given.dim(1).equals(before()).value_or(true), "past_ids is ",
             given.type());
    return given;
  }

  /// Hashes [..., heads of all n-grams]. `tokens[k]` are the tokens k positions back; `breaks[k]`,
  /// if defined, is true where a segment boundary lies between them and those one further back.
  Tensor hashes(const Tensors& tokens, const Tensors& breaks) const {
    const DType dtype = tokens[0].dtype();
    const bool ends = c_.bool_attr("reset_on_eos", false) && c_.has_input(at_.end);
    const auto factor = [&](int64_t k) {
      return ops::cast(ops::reshape(slice_axis(c_.tensor(1), 0, k, k + 1), Shape()),
                       unsigned_dtype_);
    };
    Tensor mixed = ops::cast(tokens[0], unsigned_dtype_) * factor(0), border;
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
      mixed = ops::bitwise_xor(mixed, ops::cast(token, unsigned_dtype_) * factor(k));
      const auto own = [&](size_t input) {
        return slice_axis(c_.tensor(input), 0, (k - 1) * heads_, k * heads_);
      };
      Tensor hash = ops::remainder(ops::unsqueeze(ops::cast(mixed, dtype), {-1}), own(2));
      if (c_.has_input(at_.offsets))
        hash = ops::cast(
            ops::cast(hash, unsigned_dtype_) + ops::cast(own(at_.offsets), unsigned_dtype_), dtype);
      out.push_back(hash);
    }
    return out.size() == 1 ? out[0] : ops::concat(out, -1);
  }

 private:
  const NodeCall& c_;
  InputIndices at_;
  int64_t longest_ = 0, heads_ = 0;
  DType unsigned_dtype_ = DType::kU64;  ///< unsigned, so that products wrap around
  Tensor fill_;
};

Values ngram_hashes(NodeCall& c) {
  const NGrams grams(c, {.past = 3, .offsets = 4, .end = 5});
  const Tensor& ids = c.tensor(0);
  c.check(ids.ndim() == 2, "the tokens must be [batch, steps], not ", ids.type());
  const Dim steps = ids.dim(1);
  const int64_t before = grams.before();
  const Tensor all = ops::concat({grams.past(ids.dim(0)), ids}, 1);
  Tensors tokens, breaks;
  Tensor changes;  // segment starts; not at the first token, which may continue a past
  if (c.has_input(6)) {
    const Tensor& segments = c.tensor(6);
    const Tensor first = ops::full({ids.dim(0), Dim(before + 1)}, false, DType::kBool);
    changes = ops::concat({first, ops::not_equal(slice_axis(segments, 1, 1, steps),
                                                 slice_axis(segments, 1, 0, steps - 1))},
                          1);
  }
  for (int64_t k = 0; k <= before; ++k) {
    tokens.push_back(slice_axis(all, 1, before - k, before - k + steps));
    breaks.push_back(changes && k > 0
                         ? slice_axis(changes, 1, before - k + 1, before - k + 1 + steps)
                         : Tensor());
  }
  return {grams.hashes(tokens, breaks), slice_axis(all, 1, steps, steps + before)};
}

/// Packed sequences of different lengths, each preceded by its context.
class PackedSequences {
 public:
  PackedSequences(const NodeCall& c, int64_t before) : ends_(c.constant_ints(3)), before_(before) {
    const int64_t total = constant_dim(c.tensor(0), 0);
    c.check(ends_.size() >= 2 && ends_.front() == 0 && ends_.back() == total,
            "cumulative_sequence_length does not increase from 0 to ", total);
    for (size_t s = 0; s + 1 < ends_.size(); ++s) {
      c.check(ends_[s + 1] > ends_[s], "the sequence ", s, " has no tokens");
      for (int64_t t = ends_[s]; t < ends_[s + 1]; ++t) positions_.push_back(t + shift(s));
    }
  }

  int64_t batch() const { return static_cast<int64_t>(ends_.size()) - 1; }
  /// Concatenates `past` [batch, before] and `own` [tokens].
  Tensor with_context(const Tensor& past, const Tensor& own) const {
    Tensors parts;
    for (size_t s = 0; s + 1 < ends_.size(); ++s) {
      const auto row = static_cast<int64_t>(s);
      parts.push_back(ops::reshape(slice_axis(past, 0, row, row + 1), Shape{Dim(before_)}));
      parts.push_back(slice_axis(own, 0, ends_[s], ends_[s + 1]));
    }
    return ops::concat(parts, 0);
  }
  /// Elements `back` positions before each token.
  Tensor shifted(const Tensor& with_context, int64_t back) const {
    std::vector<int64_t> from = positions_;
    for (int64_t& position : from) position -= back;
    return ops::index_select(with_context, int_vector(from), 0);
  }
  /// The first element of each sequence, [batch, 1].
  Tensor first(const Tensor& own) const {
    return ops::reshape(ops::index_select(own, int_vector({ends_.begin(), ends_.end() - 1}), 0),
                        {Dim(batch()), Dim(1)});
  }
  /// The last `before` elements of each sequence, [batch, before].
  Tensor last(const Tensor& with_context) const {
    std::vector<int64_t> from;
    for (size_t s = 0; s + 1 < ends_.size(); ++s) add_before(from, ends_[s + 1] + shift(s));
    return ops::reshape(ops::index_select(with_context, int_vector(from), 0),
                        {Dim(batch()), Dim(before_)});
  }
  /// For each of the first `counts` tokens of a sequence, the last `before` elements up to it,
  /// [batch, room, before]; the rest is `fill`.
  Tensor states(const Tensor& with_context, const std::vector<int64_t>& counts, int64_t room,
                const Tensor& fill) const {
    std::vector<int64_t> from, used;
    for (size_t s = 0; s + 1 < ends_.size(); ++s)
      for (int64_t n = 0; n < room; ++n) {
        const bool taken = n < std::min(counts[s], ends_[s + 1] - ends_[s]);
        add_before(from, taken ? ends_[s] + shift(s) + n + 1 : before_);
        used.insert(used.end(), static_cast<size_t>(before_), taken ? 1 : 0);
      }
    const Tensor all = ops::where(int_vector(used, DType::kBool),
                                  ops::index_select(with_context, int_vector(from), 0), fill);
    return ops::reshape(all, {Dim(batch()), Dim(room), Dim(before_)});
  }

 private:
  /// Offset of sequence s after the contexts are inserted.
  int64_t shift(size_t s) const { return (static_cast<int64_t>(s) + 1) * before_; }
  void add_before(std::vector<int64_t>& positions, int64_t end) const {
    for (int64_t k = before_; k > 0; --k) positions.push_back(end - k);
  }

  std::vector<int64_t> ends_, positions_;
  int64_t before_;
};

/// N-gram hashes of packed sequences.
Values packed_ngram_hashes(NodeCall& c) {
  const NGrams grams(c, {.past = 4, .offsets = 5, .end = 6});
  const Tensor& ids = c.tensor(0);
  c.check(ids.ndim() == 1, "the tokens must be a vector, not ", ids.type());
  const int64_t before = grams.before(), room = c.int_attr("state_update_capacity", 0);
  c.check(room >= 0 && room <= 8, "state_update_capacity is ", room);
  const PackedSequences packed(c, before);
  const Tensor all = packed.with_context(grams.past(packed.batch()), ids);
  Tensor segments;
  if (c.has_input(7)) {
    const Tensor& own = c.tensor(7);
    segments = packed.with_context(
        c.has_input(8) ? c.tensor(8) : ops::expand(packed.first(own), {packed.batch(), before}),
        own);
  }
  Tensors tokens, breaks;
  for (int64_t k = 0; k <= before; ++k) {
    tokens.push_back(packed.shifted(all, k));
    breaks.push_back(segments && k > 0 ? ops::not_equal(packed.shifted(segments, k),
                                                        packed.shifted(segments, k - 1))
                                       : Tensor());
  }
  Values out = {grams.hashes(tokens, breaks), packed.last(all), Value(), Value()};
  if (c.has_output(2)) {
    c.check(c.has_input(7), "present_segment_ids needs segment_ids");
    out[2] = packed.last(segments);
  }
  if (c.has_output(3) && room > 0) {
    const auto counts = c.constant_ints(9);
    c.check(static_cast<int64_t>(counts.size()) == packed.batch(), "there are ", counts.size(),
            " counts for ", packed.batch(), " sequences");
    const Tensor pad = int_scalar(c.int_attr("pad_id", 0), ids.dtype());
    out[3] = packed.states(all, counts, room, pad);
  }
  return out;
}

}  // namespace

OperatorTable contrib_ngram_hash_operators() {
  static constexpr Operator operators[] = {
      {"NGramHashMapping", 1, ngram_hashes},
      {"VarlenNGramHashMapping", 1, packed_ngram_hashes},
  };
  return operators;
}

}  // namespace paddle::onnx
