#include "onnx/contrib/decoder_graphs.h"

#include <algorithm>

#include "onnx/graph/evaluator.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

using decoding::SearchOptions;
using decoding::Tokens;
using formats::onnx::Graph;

/// x with `axis` reordered to indices `from`.
Tensor reorder(const Tensor& x, const std::vector<int64_t>& from, int64_t axis) {
  bool same = constant_dim(x, axis) == static_cast<int64_t>(from.size());
  for (size_t i = 0; i < from.size(); ++i) same = same && from[i] == static_cast<int64_t>(i);
  return same ? x : ops::index_select(x, int_vector(from), axis);
}

Tokens last_tokens(const std::vector<Tokens>& rows) {
  Tokens out;
  for (const Tokens& row : rows) out.push_back(row.back());
  return out;
}

/// Base of both kinds of decoders.
class DecoderGraph : public Decoder {
 public:
  explicit DecoderGraph(const NodeCall& c) : c_(c) {}

 protected:
  Values run(const Graph& graph, const Values& inputs) const {
    c_.evaluator().count_iteration();
    const size_t given = inputs.size(), wanted = graph.inputs.size();
    c_.check(given == wanted, "the graph '", graph.name, "' has ", wanted, " inputs, not ", given);
    return c_.evaluator().run(graph, inputs, c_.scope());
  }
  /// An empty cache of `length` steps along `axis` for the first call of a graph.
  Value empty_past(const Graph& graph, size_t input, int64_t rows, int64_t rows_axis,
                   int64_t length, int64_t axis) const {
    const auto& declared = graph.inputs.at(input).type;
    c_.check(declared.shape && static_cast<int64_t>(declared.shape->size()) > axis, "the input '",
             graph.inputs[input].name, "' must declare its shape");
    Shape shape = *declared.shape;
    shape[static_cast<size_t>(rows_axis)] = rows;
    shape[static_cast<size_t>(axis)] = length;
    for (const Dim& d : shape)
      c_.check(d.is_constant(), "the input '", graph.inputs[input].name, "' must declare its size ",
               d);
    return ops::full(shape, 0.0, declared.dtype.value_or(DType::kF32));
  }
  static bool takes(const Graph& graph, std::string_view name) {
    return std::any_of(graph.inputs.begin(), graph.inputs.end(),
                       [&](const auto& i) { return i.name == name; });
  }
  void reject_cache_indirection(const Graph& graph) const {
    c_.check(!takes(graph, "beam_width") && !takes(graph, "cache_indirection"), "the graph '",
             graph.name, "' uses the cache layout of GPUs (cache_indirection)");
  }

  const NodeCall& c_;
};

class DecoderOnly final : public DecoderGraph {
 public:
  DecoderOnly(const NodeCall& c, const SearchOptions& o, const Tokens& mask)
      : DecoderGraph(c), options_(o), graph_(c.graph_attr("decoder")) {
    reject_cache_indirection(graph_);
    c.check(graph_.inputs.size() >= kPast && !graph_.outputs.empty(),
            "the decoder has too few inputs or outputs");
    masks_ = repeat_rows(token_rows(mask, o.batch), o.num_beams);
  }

  Tensor next(const std::vector<Tokens>& sequences, const std::vector<int64_t>& from) override {
    const bool first = cache_.empty();
    const Graph& graph =
        first && c_.has_attribute("init_decoder") ? c_.graph_attr("init_decoder") : graph_;
    const bool shared = takes(graph, "past_sequence_length");
    const int64_t rows = options_.rows(), length = static_cast<int64_t>(sequences[0].size());
    const size_t pasts = graph_.outputs.size() - 1;
    Tokens ids, positions;
    if (first) {
      ids = concatenate_rows(sequences);
      for (const Tokens& row : sequences) {  // padding has no position, whatever the mask says
        int32_t at = 0;
        for (const int32_t id : row) positions.push_back(id == options_.pad_token ? 0 : at++);
        next_positions_.push_back(at);
      }
      for (size_t i = 0; i < pasts; ++i)
        cache_.push_back(
            empty_past(graph_, kPast + i, rows, 1, shared ? options_.max_length : 0, 3));
    } else {
      ids = last_tokens(sequences);
      for (int32_t& position : next_positions_) positions.push_back(position++);
      for (Tokens& mask : masks_) mask.push_back(1);
      for (Value& past : cache_) past = reorder(past.tensor(), from, 1);
    }
    Values inputs = {token_matrix(ids, rows), token_matrix(positions, rows),
                     token_matrix(concatenate_rows(masks_), rows)};
    inputs.insert(inputs.end(), cache_.begin(), cache_.end());
    if (shared) inputs.emplace_back(int_vector({first ? 0 : length - 1}, DType::kI32));
    Values outputs = run(graph, inputs);
    c_.check(outputs.size() == pasts + 1, "the graph '", graph.name, "' returns ", outputs.size(),
             " values");
    cache_.assign(outputs.begin() + 1, outputs.end());
    return outputs[0].tensor();
  }

  /// First cache input.
 private:
  static constexpr size_t kPast = 3;

  const SearchOptions& options_;
  const Graph& graph_;
  std::vector<Tokens> masks_;  ///< per row; equal for the beams of a sample
  Tokens next_positions_;      ///< position of the next token per row
  Values cache_;
};

class EncoderDecoder final : public DecoderGraph {
 public:
  EncoderDecoder(const NodeCall& c, const SearchOptions& o, Tensor mask)
      : DecoderGraph(c),
        options_(o),
        encoder_(c.graph_attr("encoder")),
        graph_(c.graph_attr("decoder")),
        mask_(std::move(mask)) {
    reject_cache_indirection(graph_);
    c.check(!graph_.inputs.empty() && graph_.outputs.size() % 2 == 1,
            "the decoder must return logits, keys and values");
  }

  Tensor next(const std::vector<Tokens>& sequences, const std::vector<int64_t>& from) override {
    Tensor logits;
    if (!encoded_) logits = encode(sequences);
    if (logits) return logits;
    for (size_t i = 0; i < cache_count(); ++i)
      self_cache_[i] = reorder(self_cache_[i].tensor(), from, 0);
    return decode(sequences);
  }

 private:
  size_t cache_count() const { return graph_.outputs.size() - 1; }

  /// Runs the encoder; returns the logits of the first step if it computes them.
  Tensor encode(const std::vector<Tokens>& sequences) {
    encoded_ = true;
    const bool steps = takes(encoder_, "decoder_input_ids");
    Values inputs = {c_.tensor(0)};
    if (mask_) inputs.emplace_back(mask_);
    if (steps) {
      std::vector<Tokens> starts;
      for (int64_t s = 0; s < options_.batch; ++s)
        starts.push_back(sequences[static_cast<size_t>(s * options_.num_beams)]);
      inputs.emplace_back(token_matrix(concatenate_rows(starts), options_.batch));
    }
    Values outputs = run(encoder_, inputs);
    const size_t before = steps ? 2 : 0;
    c_.check(outputs.size() == before + (steps ? 2 : 1) * cache_count(), "the encoder returns ",
             outputs.size(), " values for a decoder with a cache of ", cache_count());
    const Tensor logits = steps ? outputs[0].tensor() : Tensor();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (i > 0 || !steps) outputs[i] = repeat_for_beams(outputs[i].tensor(), options_.num_beams);
    if (steps) hidden_ = outputs[1];
    auto at = outputs.begin() + static_cast<int64_t>(before);
    if (steps) self_cache_.assign(at, at + static_cast<int64_t>(cache_count()));
    cross_cache_.assign(outputs.end() - static_cast<int64_t>(cache_count()), outputs.end());
    if (mask_) mask_ = repeat_for_beams(mask_, options_.num_beams);
    if (!steps)
      for (size_t i = 0; i < cache_count(); ++i)
        self_cache_.push_back(empty_past(graph_, first_past() + i, options_.rows(), 0, 0, 2));
    const int64_t room = options_.max_length;
    if (takes(graph_, "past_sequence_length"))
      for (Value& past : self_cache_) {
        const int64_t length = constant_dim(past.tensor(), 2);
        c_.check(length <= room, "max_length is ", room);
        past = ops::concat({past.tensor(), rest_of(past.tensor(), room - length)}, 2);
      }
    return logits;
  }

  static Tensor rest_of(const Tensor& past, int64_t length) {
    Shape shape = past.shape();
    shape[2] = length;
    return ops::full(shape, 0.0, past.dtype());
  }

  size_t first_past() const {
    return 1 + (takes(graph_, "encoder_attention_mask") ? 1 : 0) +
           (takes(graph_, "encoder_hidden_states") ? 1 : 0);
  }

  Tensor decode(const std::vector<Tokens>& sequences) {
    const auto& ids = graph_.inputs[0].type.shape;
    const bool one = ids && ids->size() == 2 && (*ids)[1].equals(1).value_or(false);
    Values inputs = {
        token_matrix(one ? last_tokens(sequences) : concatenate_rows(sequences), options_.rows())};
    if (takes(graph_, "encoder_attention_mask")) inputs.emplace_back(mask_);
    if (takes(graph_, "encoder_hidden_states")) inputs.push_back(hidden_);
    inputs.insert(inputs.end(), self_cache_.begin(), self_cache_.end());
    inputs.insert(inputs.end(), cross_cache_.begin(), cross_cache_.end());
    if (takes(graph_, "past_sequence_length"))
      inputs.emplace_back(int_vector({static_cast<int64_t>(sequences[0].size()) - 1}, DType::kI32));
    Values outputs = run(graph_, inputs);
    self_cache_.assign(outputs.begin() + 1, outputs.end());
    return outputs[0].tensor();
  }

  const SearchOptions& options_;
  const Graph& encoder_;
  const Graph& graph_;
  Tensor mask_;
  Value hidden_;
  Values self_cache_, cross_cache_;
  bool encoded_ = false;
};

}  // namespace

Tensor token_matrix(const decoding::Tokens& tokens, int64_t rows) {
  return Tensor(Array::from(tokens, {rows, static_cast<int64_t>(tokens.size()) / rows}));
}

Tensor repeat_for_beams(const Tensor& x, int64_t beams) {
  std::vector<int64_t> from;
  for (int64_t i = 0; i < constant_dim(x, 0) * beams; ++i) from.push_back(i / beams);
  return reorder(x, from, 0);
}

std::vector<Tokens> token_rows(const Tokens& tokens, int64_t rows) {
  std::vector<Tokens> out;
  const auto width = static_cast<int64_t>(tokens.size()) / rows;
  for (int64_t r = 0; r < rows; ++r)
    out.emplace_back(tokens.begin() + r * width, tokens.begin() + (r + 1) * width);
  return out;
}

std::vector<Tokens> repeat_rows(const std::vector<Tokens>& rows, int64_t times) {
  std::vector<Tokens> out;
  for (const Tokens& row : rows) out.insert(out.end(), static_cast<size_t>(times), row);
  return out;
}

Tokens concatenate_rows(const std::vector<Tokens>& rows) {
  Tokens out;
  for (const Tokens& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

std::unique_ptr<Decoder> make_decoder_only(const NodeCall& c, const SearchOptions& options,
                                           const Tokens& mask) {
  return std::make_unique<DecoderOnly>(c, options, mask);
}

std::unique_ptr<Decoder> make_encoder_decoder(const NodeCall& c, const SearchOptions& options,
                                              Tensor mask) {
  return std::make_unique<EncoderDecoder>(c, options, std::move(mask));
}

}  // namespace paddle::onnx
