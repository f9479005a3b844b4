// Text generation operators of com.microsoft with decoder subgraphs: GreedySearch, Sampling,
// BeamSearch and WhisperBeamSearch. A decoder takes the tokens since the last call and a key-value
// cache (past_*), and returns the logits of the next token and the updated cache (present_*).

#include <algorithm>
#include <numeric>

#include "base/limits.h"
#include "decoding/beam_search.h"
#include "decoding/logits_processor.h"
#include "decoding/sampling.h"
#include "onnx/graph/evaluator.h"
#include "onnx/ops/helpers.h"
#include "tensor/interpreter.h"

namespace paddle::onnx {
namespace {

using decoding::BeamSearch;
using decoding::SearchOptions;
using decoding::Tokens;
using formats::onnx::Graph;

// --- inputs and attributes ---

enum Model : uint8_t { kDecoder, kEncoderDecoder, kWhisper };

/// Positions of the operator's optional inputs.
struct InputIndices {
  static constexpr size_t kNone = SIZE_MAX;
  size_t num_beams = kNone, num_return_sequences = kNone, length_penalty = kNone,
         repetition_penalty = kNone, vocab_mask = kNone, prefix_vocab_mask = kNone,
         attention_mask = kNone, decoder_input_ids = kNone, logits_processor = kNone,
         temperature = kNone, presence_mask = kNone, seed = kNone;
};
constexpr InputIndices kBeamSearchInputs = {.num_beams = 3,
                                            .num_return_sequences = 4,
                                            .length_penalty = 5,
                                            .repetition_penalty = 6,
                                            .vocab_mask = 7,
                                            .prefix_vocab_mask = 8,
                                            .attention_mask = 9,
                                            .decoder_input_ids = 10,
                                            .logits_processor = 11};
constexpr InputIndices kSingleSequenceInputs = {.repetition_penalty = 3,
                                                .vocab_mask = 4,
                                                .prefix_vocab_mask = 5,
                                                .attention_mask = 6,
                                                .presence_mask = 7,
                                                .seed = 8};

bool has(const NodeCall& c, size_t input) {
  return input != InputIndices::kNone && c.has_input(input);
}

int32_t token_attribute(const NodeCall& c, std::string_view name, int64_t default_value) {
  const int64_t token = c.int_attr(name, default_value);
  c.check(token >= -1 && token <= INT32_MAX, name, " is ", token);
  return static_cast<int32_t>(token);
}

/// An integer input of the given shape.
Tokens tokens_input(const NodeCall& c, size_t input, const Dims& shape) {
  const Array given = c.constant_array(input);
  c.check(given.shape == shape, "input ", input, " has the shape ", str(given.shape), ", not ",
          str(shape));
  const Array tokens = given.cast(DType::kI32).contiguous();
  return {tokens.data<int32_t>(), tokens.data<int32_t>() + tokens.size()};
}

/// Options from inputs and attributes; the vocabulary size is known after the first decoder call.
SearchOptions search_options(const NodeCall& c, const InputIndices& inputs) {
  const auto integer = [&](size_t input, int64_t default_value) {
    return has(c, input) ? c.constant_int(input) : default_value;
  };
  const auto real = [&](size_t input, double default_value) {
    return static_cast<float>(has(c, input) ? c.constant_float(input) : default_value);
  };
  SearchOptions o;
  o.batch = constant_dim(c.tensor(0), 0);
  o.max_length = integer(1, 0);
  o.min_length = integer(2, 0);
  o.num_beams = integer(inputs.num_beams, 1);
  o.num_return_sequences = integer(inputs.num_return_sequences, 1);
  o.eos_token = token_attribute(c, "eos_token_id", -1);
  o.pad_token = token_attribute(c, "pad_token_id", -1);
  o.length_penalty = real(inputs.length_penalty, 1);
  o.repetition_penalty = real(inputs.repetition_penalty, 1);
  o.temperature = real(inputs.temperature, c.float_attr("temperature", 1));
  o.presence_penalty = static_cast<float>(c.float_attr("presence_penalty", 0));
  o.no_repeat_ngram_size = c.int_attr("no_repeat_ngram_size", 0);
  o.early_stopping = c.bool_attr("early_stopping", false);
  o.vocabulary_size = c.int_attr("vocab_size", -1);
  c.check(o.batch > 0, "the batch is empty");
  c.check(o.num_beams >= 1 && o.num_beams <= limits().memory / 64 / o.batch, "num_beams is ",
          o.num_beams);
  c.check(o.num_return_sequences >= 1 && o.num_return_sequences <= o.num_beams,
          "num_return_sequences is ", o.num_return_sequences, ", with ", o.num_beams, " beams");
  c.check(o.max_length <= limits().memory / 16 / o.rows(), "max_length is ", o.max_length);
  c.check(o.repetition_penalty > 0, "repetition_penalty is ", o.repetition_penalty);
  c.check(o.no_repeat_ngram_size >= 0, "no_repeat_ngram_size is ", o.no_repeat_ngram_size);
  return o;
}

void set_vocabulary(const NodeCall& c, const InputIndices& inputs, int64_t given,
                    SearchOptions& o) {
  if (o.vocabulary_size <= 0) o.vocabulary_size = given;
  c.check(o.vocabulary_size <= given, "vocab_size is ", o.vocabulary_size,
          ", but the decoder returns ", given, " scores");
  if (has(c, inputs.vocab_mask))
    o.vocabulary_mask = tokens_input(c, inputs.vocab_mask, {o.vocabulary_size});
  if (has(c, inputs.prefix_vocab_mask))
    o.prefix_vocabulary_mask =
        tokens_input(c, inputs.prefix_vocab_mask, {o.batch, o.vocabulary_size});
  if (has(c, inputs.presence_mask))
    o.presence_mask = tokens_input(c, inputs.presence_mask, {o.batch, o.vocabulary_size});
}

// --- decoders ---

Tensor matrix(const Tokens& tokens, int64_t rows) {
  return Tensor(Array::from(tokens, {rows, static_cast<int64_t>(tokens.size()) / rows}));
}

/// x with `axis` reordered to indices `from`.
Tensor reorder(const Tensor& x, const std::vector<int64_t>& from, int64_t axis) {
  bool same = constant_dim(x, axis) == static_cast<int64_t>(from.size());
  for (size_t i = 0; i < from.size(); ++i) same = same && from[i] == static_cast<int64_t>(i);
  return same ? x : ops::index_select(x, int_vector(from), axis);
}

/// Repeats each sample along axis 0 for its beams.
Tensor repeat_for_beams(const Tensor& x, int64_t beams) {
  std::vector<int64_t> from;
  for (int64_t i = 0; i < constant_dim(x, 0) * beams; ++i) from.push_back(i / beams);
  return reorder(x, from, 0);
}

std::vector<Tokens> rows_of(const Tokens& tokens, int64_t rows) {
  std::vector<Tokens> out;
  const auto width = static_cast<int64_t>(tokens.size()) / rows;
  for (int64_t r = 0; r < rows; ++r)
    out.emplace_back(tokens.begin() + r * width, tokens.begin() + (r + 1) * width);
  return out;
}

/// Each row `times` times.
std::vector<Tokens> repeat(const std::vector<Tokens>& rows, int64_t times) {
  std::vector<Tokens> out;
  for (const Tokens& row : rows) out.insert(out.end(), static_cast<size_t>(times), row);
  return out;
}

Tokens concatenate(const std::vector<Tokens>& rows) {
  Tokens out;
  for (const Tokens& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

Tokens last_tokens(const std::vector<Tokens>& rows) {
  Tokens out;
  for (const Tokens& row : rows) out.push_back(row.back());
  return out;
}

/// Decoder subgraphs.
class Decoder {
 public:
  explicit Decoder(const NodeCall& c) : c_(c) {}
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Logits [rows or samples, steps, vocabulary] after `sequences`; `from` holds the row of the
  /// previous call that each row extends.
  virtual Tensor next(const std::vector<Tokens>& sequences, const std::vector<int64_t>& from) = 0;

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
  void refuse_cache_indirection(const Graph& graph) const {
    c_.check(!takes(graph, "beam_width") && !takes(graph, "cache_indirection"), "the graph '",
             graph.name, "' keeps its past in the form for GPUs (cache_indirection)");
  }

  const NodeCall& c_;
};

/// input_ids, position_ids, attention_mask, past_0, …[, past_sequence_length] -> logits, present_0…
class DecoderOnly final : public Decoder {
 public:
  DecoderOnly(const NodeCall& c, const SearchOptions& o, const Tokens& mask)
      : Decoder(c), options_(o), graph_(c.graph_attr("decoder")) {
    refuse_cache_indirection(graph_);
    c.check(graph_.inputs.size() >= kPast && !graph_.outputs.empty(),
            "the decoder has too few inputs or outputs");
    masks_ = repeat(rows_of(mask, o.batch), o.num_beams);
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
      ids = concatenate(sequences);
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
    Values inputs = {matrix(ids, rows), matrix(positions, rows), matrix(concatenate(masks_), rows)};
    inputs.insert(inputs.end(), cache_.begin(), cache_.end());
    if (shared) inputs.emplace_back(int_vector({first ? 0 : length - 1}, DType::kI32));
    Values outputs = run(graph, inputs);
    c_.check(outputs.size() == pasts + 1, "the graph '", graph.name, "' returns ", outputs.size(),
             " values");
    cache_.assign(outputs.begin() + 1, outputs.end());
    return outputs[0].tensor();
  }

 private:
  static constexpr size_t kPast = 3;  ///< first cache input

  const SearchOptions& options_;
  const Graph& graph_;
  std::vector<Tokens> masks_;  ///< per row; equal for the beams of a sample
  Tokens next_positions_;      ///< position of the next token per row
  Values cache_;
};

/// An encoder that also runs the first decoder step, or only returns keys and values; then
/// input_ids[, encoder_attention_mask][, encoder_hidden_states], past_*_self…, past_*_cross… [,
/// past_sequence_length] -> logits, present_*_self….
class EncoderDecoder final : public Decoder {
 public:
  EncoderDecoder(const NodeCall& c, const SearchOptions& o, Tensor mask)
      : Decoder(c),
        options_(o),
        encoder_(c.graph_attr("encoder")),
        graph_(c.graph_attr("decoder")),
        mask_(std::move(mask)) {
    refuse_cache_indirection(graph_);
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
      inputs.emplace_back(matrix(concatenate(starts), options_.batch));
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
        matrix(one ? last_tokens(sequences) : concatenate(sequences), options_.rows())};
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

// --- search loops ---

enum class Scale : uint8_t { kLogits, kLogProbabilities };

/// Scores of the token after each row. The first logits determine the vocabulary size.
std::vector<float> last_scores(const NodeCall& c, const Tensor& logits, Scale scale,
                               SearchOptions& o, const InputIndices& inputs, int64_t step) {
  const Dims& given = logits.array().shape;
  c.check(given.size() == 3 && given[1] > 0 && given[2] > 0 &&
              (given[0] == o.rows() || given[0] == o.batch),
          "the decoder returns scores of shape ", str(given), " for ", o.rows(), " rows");
  if (step == 0) set_vocabulary(c, inputs, given[2], o);
  c.check(o.vocabulary_size <= given[2], "the decoder returns ", given[2], " scores");
  const Tensor last = slice_axis(logits, 1, given[1] - 1, given[1]);
  Tensor scores = ops::cast(slice_axis(last, 2, 0, o.vocabulary_size), DType::kF32);
  if (scale == Scale::kLogProbabilities) scores = ops::log_softmax(scores);
  if (given[0] != o.rows()) scores = repeat_for_beams(scores, o.num_beams);
  const Array all = scores.array().contiguous();
  return {all.data<float>(), all.data<float>() + all.size()};
}

/// The model type. Generation cannot be traced: its length depends on the data.
int64_t model_type(const NodeCall& c) {
  if (current_interpreter().traces())
    throw DataDependentError(ErrorCode::kModel, "tokens are generated as the model runs");
  return c.int_attr("model_type", kDecoder);
}

SearchOptions single_sequence_options(const NodeCall& c) {
  c.check(model_type(c) == kDecoder, "only decoders (model_type 0) are supported");
  return search_options(c, kSingleSequenceInputs);
}

/// The attention mask: 1 where `ids` are not padding; `leading`: only count padding before the
/// first token.
Tokens attention_mask(const NodeCall& c, const Tokens& ids, const SearchOptions& o,
                      const InputIndices& inputs, bool leading) {
  const int64_t width = static_cast<int64_t>(ids.size()) / o.batch;
  if (has(c, inputs.attention_mask))
    return tokens_input(c, inputs.attention_mask, {o.batch, width});
  Tokens mask;
  for (const Tokens& row : rows_of(ids, o.batch)) {
    bool begun = false;
    for (const int32_t id : row) {
      begun = begun || id != o.pad_token;
      mask.push_back((leading ? begun : id != o.pad_token) ? 1 : 0);
    }
  }
  return mask;
}

Tokens prompt_tokens(const NodeCall& c, size_t input, const SearchOptions& o) {
  const Tensor& ids = c.tensor(input);
  c.check(ids.ndim() == 2, "the tokens must be a matrix");
  const int64_t width = constant_dim(ids, 1);
  c.check(width > 0, "there are no tokens to go on from");
  c.check(o.max_length > width, "max_length is ", o.max_length, ", but there are ", width,
          " tokens already");
  return tokens_input(c, input, {o.batch, width});
}

/// Decodes one row per sample; `choose` selects the next tokens from scores.
template <class Choose>
Values decode_single(NodeCall& c, SearchOptions& o, Choose&& choose) {
  const Tokens prompts = prompt_tokens(c, 0, o);
  DecoderOnly decoder(c, o, attention_mask(c, prompts, o, kSingleSequenceInputs, false));
  std::vector<Tokens> sequences = rows_of(prompts, o.batch);
  std::vector<int64_t> same(sequences.size());
  std::iota(same.begin(), same.end(), int64_t{0});
  std::vector<char> ended(sequences.size(), 0);
  std::vector<float> scores;
  const auto all_ended = [&] {
    return std::all_of(ended.begin(), ended.end(), [](char e) { return e != 0; });
  };
  for (int64_t step = 0; static_cast<int64_t>(sequences[0].size()) < o.max_length && !all_ended();
       ++step) {
    const Tensor logits = decoder.next(sequences, same);
    scores = last_scores(c, logits, Scale::kLogits, o, kSingleSequenceInputs, step);
    decoding::process_logits(o, sequences, step, scores);
    const Tokens next = choose(std::span(scores));
    for (size_t r = 0; r < next.size(); ++r) {
      ended[r] = ended[r] || next[r] == o.eos_token;
      sequences[r].push_back(ended[r] ? o.pad_token : next[r]);
    }
  }
  for (Tokens& row : sequences) row.resize(static_cast<size_t>(o.max_length), o.pad_token);
  Array filtered = Array::empty(DType::kF32, {o.batch, o.vocabulary_size});
  std::copy(scores.begin(), scores.end(), filtered.data<float>());
  return {matrix(concatenate(sequences), o.batch), Tensor(filtered)};
}

Values greedy_search(NodeCall& c) {
  SearchOptions o = single_sequence_options(c);
  return {decode_single(
      c, o, [&](std::span<float> s) { return decoding::argmax_tokens(s, o.vocabulary_size); })[0]};
}

Values sampling(NodeCall& c) {
  SearchOptions o = single_sequence_options(c);
  const int64_t kept = c.int_attr("min_tokens_to_keep", 0);
  c.check(kept >= 0, "min_tokens_to_keep is ", kept);
  decoding::TopPSampler sampler(
      {.top_p = static_cast<float>(c.float_attr("top_p", 0)),
       .filter_value = static_cast<float>(c.float_attr("filter_value", -1e20)),
       .min_tokens_to_keep = kept,
       .descending = c.bool_attr("custom", false),
       .seed = static_cast<uint32_t>(
           has(c, kSingleSequenceInputs.seed) ? c.constant_int(kSingleSequenceInputs.seed) : 0)});
  return decode_single(c, o,
                       [&](std::span<float> s) { return sampler.sample(s, o.vocabulary_size); });
}

/// Scores of all steps [max_length - start, batch, beams, vocabulary]; zeros for steps that were
/// not run.
class StepScores {
 public:
  void add(const NodeCall& c, const SearchOptions& o, int64_t start,
           const std::vector<float>& scores) {
    if (!all_.storage) {
      const int64_t row = o.rows() * o.vocabulary_size;
      c.check(o.max_length - start <= limits().memory / 8 / row,
              "the scores of all steps do not fit into memory");
      all_ = Array::zeros(DType::kF32,
                          {o.max_length - start, o.batch, o.num_beams, o.vocabulary_size});
    }
    std::copy(scores.begin(), scores.end(), all_.data<float>() + at_);
    at_ += static_cast<int64_t>(scores.size());
  }
  Value value() const { return Tensor(all_); }

 private:
  Array all_;
  int64_t at_ = 0;
};

Values decode_beams(NodeCall& c, SearchOptions& o, const InputIndices& inputs, Decoder& decoder,
                    const Tokens& prompts) {
  BeamSearch beams(o, repeat(rows_of(prompts, o.batch), o.num_beams));
  const int64_t begin = beams.length();
  const DType real =
      c.has_input(inputs.length_penalty) ? c.tensor(inputs.length_penalty).dtype() : DType::kF32;
  StepScores steps;
  for (int64_t step = 0; beams.length() < o.max_length && !beams.done(); ++step) {
    const Tensor logits = decoder.next(beams.sequences(), beams.parent_rows());
    auto scores = last_scores(c, logits, Scale::kLogProbabilities, o, inputs, step);
    decoding::process_logits(o, beams.sequences(), step, scores);
    beams.advance(scores);
    if (c.has_output(2)) steps.add(c, o, begin, scores);
  }
  const BeamSearch::Results best = beams.results();
  const Array scores = Array::from(best.scores, {o.batch, o.num_return_sequences}).cast(real);
  const Tensor sequences =
      ops::reshape(matrix(best.sequences, o.batch * o.num_return_sequences),
                   Shape{Dim(o.batch), Dim(o.num_return_sequences), Dim(o.max_length)});
  return {sequences, Tensor(scores),
          c.has_output(2) ? Value(ops::cast(steps.value().tensor(), real)) : Value()};
}

/// The start tokens of a decoder behind an encoder.
Tokens start_tokens(const NodeCall& c, const SearchOptions& o) {
  const int32_t start = token_attribute(c, "decoder_start_token_id", -1);
  c.check(start >= 0, "decoder_start_token_id is missing");
  c.check(o.max_length > 1, "max_length is ", o.max_length);
  return Tokens(static_cast<size_t>(o.batch), start);
}

Values whisper_search(NodeCall& c, const InputIndices& inputs) {
  SearchOptions o = search_options(c, inputs);
  c.check(!c.has_output(3) && !c.has_output(4),
          "only the outputs sequences and sequences_scores are supported");
  c.check(!c.has_input(13), "extra_decoding_ids are not supported");
  if (has(c, inputs.logits_processor) && c.constant_int(inputs.logits_processor) == 1) {
    const auto token = [&](const char* name, int32_t default_value) {
      return token_attribute(c, name, default_value);
    };
    o.timestamps = {.start_of_transcript = token("decoder_start_token_id", o.eos_token + 1),
                    .translate = token("translate_token_id", 50358),
                    .transcribe = token("transcribe_token_id", 50359),
                    .start_of_lm = token("start_of_lm_token_id", o.eos_token + 105),
                    .no_timestamps = token("no_timestamps_token_id", o.eos_token + 106),
                    .first_timestamp = token("beginning_timestamp_token_id", o.eos_token + 107)};
  }
  const Tokens prompts = has(c, inputs.decoder_input_ids)
                             ? prompt_tokens(c, inputs.decoder_input_ids, o)
                             : start_tokens(c, o);
  EncoderDecoder decoder(c, o, Tensor());
  return decode_beams(c, o, inputs, decoder, prompts);
}

Values beam_search(NodeCall& c) {
  const int64_t model = model_type(c);
  if (model == kWhisper) return whisper_search(c, kBeamSearchInputs);
  SearchOptions o = search_options(c, kBeamSearchInputs);
  if (model == kDecoder) {
    const Tokens prompts = prompt_tokens(c, 0, o);
    DecoderOnly decoder(c, o, attention_mask(c, prompts, o, kBeamSearchInputs, false));
    return decode_beams(c, o, kBeamSearchInputs, decoder, prompts);
  }
  c.check(model == kEncoderDecoder, "model_type is ", model);
  const Tensor& ids = c.tensor(0);
  c.check(ids.ndim() == 2, "the tokens must be a matrix");
  const Tokens source = tokens_input(c, 0, {o.batch, constant_dim(ids, 1)});
  EncoderDecoder decoder(c, o,
                         matrix(attention_mask(c, source, o, kBeamSearchInputs, true), o.batch));
  return decode_beams(c, o, kBeamSearchInputs, decoder, start_tokens(c, o));
}

Values whisper_beam_search(NodeCall& c) {
  model_type(c);
  InputIndices inputs = kBeamSearchInputs;
  inputs.attention_mask = InputIndices::kNone;
  inputs.temperature = 14;
  return whisper_search(c, inputs);
}

constexpr Operator kOperators[] = {
    {"BeamSearch", 1, beam_search},
    {"GreedySearch", 1, greedy_search},
    {"Sampling", 1, sampling},
    {"WhisperBeamSearch", 1, whisper_beam_search},
};

}  // namespace

OperatorTable contrib_generation_operators() { return kOperators; }

}  // namespace paddle::onnx
