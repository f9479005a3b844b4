// Text generation operators of com.microsoft with decoder subgraphs: GreedySearch, Sampling,
// BeamSearch and WhisperBeamSearch. A decoder takes the tokens since the last call and a key-value
// cache (past_*), and returns the logits of the next token and the updated cache (present_*).

#include <algorithm>
#include <numeric>

#include "base/limits.h"
#include "decoding/beam_search.h"
#include "decoding/logits_processor.h"
#include "decoding/sampling.h"
#include "onnx/contrib/decoder_graphs.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"
#include "tensor/interpreter.h"

namespace paddle::onnx {
namespace {

using decoding::BeamSearch;
using decoding::SearchOptions;
using decoding::Tokens;

// --- inputs and attributes ---

enum Model : uint8_t { kDecoder, kEncoderDecoder, kWhisper };

/// Positions of the operator's optional inputs.
struct SearchInputs {
  static constexpr size_t kNone = SIZE_MAX;
  size_t num_beams = kNone, num_return_sequences = kNone, length_penalty = kNone,
         repetition_penalty = kNone, vocab_mask = kNone, prefix_vocab_mask = kNone,
         attention_mask = kNone, decoder_input_ids = kNone, logits_processor = kNone,
         temperature = kNone, presence_mask = kNone, seed = kNone;
};
constexpr SearchInputs kBeamSearchInputs = {.num_beams = 3,
                                            .num_return_sequences = 4,
                                            .length_penalty = 5,
                                            .repetition_penalty = 6,
                                            .vocab_mask = 7,
                                            .prefix_vocab_mask = 8,
                                            .attention_mask = 9,
                                            .decoder_input_ids = 10,
                                            .logits_processor = 11};
constexpr SearchInputs kSingleSequenceInputs = {.repetition_penalty = 3,
                                                .vocab_mask = 4,
                                                .prefix_vocab_mask = 5,
                                                .attention_mask = 6,
                                                .presence_mask = 7,
                                                .seed = 8};

bool has(const NodeCall& c, size_t input) {
  return input != SearchInputs::kNone && c.has_input(input);
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
SearchOptions search_options(const NodeCall& c, const SearchInputs& inputs) {
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

void set_vocabulary(const NodeCall& c, const SearchInputs& inputs, int64_t given,
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

// --- search loops ---

enum class Scale : uint8_t { kLogits, kLogProbabilities };

/// Scores of the token after each row. The first logits determine the vocabulary size.
std::vector<float> last_scores(const NodeCall& c, const Tensor& logits, Scale scale,
                               SearchOptions& o, const SearchInputs& inputs, int64_t step) {
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
                      const SearchInputs& inputs, bool leading) {
  const int64_t width = static_cast<int64_t>(ids.size()) / o.batch;
  if (has(c, inputs.attention_mask))
    return tokens_input(c, inputs.attention_mask, {o.batch, width});
  Tokens mask;
  for (const Tokens& row : token_rows(ids, o.batch)) {
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
  c.check(width > 0, "there are no prompt tokens");
  c.check(o.max_length > width, "max_length is ", o.max_length, ", but there are ", width,
          " tokens already");
  return tokens_input(c, input, {o.batch, width});
}

/// Decodes one row per sample; `choose` selects the next tokens from scores.
template <class Choose>
Values decode_single(NodeCall& c, SearchOptions& o, Choose&& choose) {
  const Tokens prompts = prompt_tokens(c, 0, o);
  const auto decoder =
      make_decoder_only(c, o, attention_mask(c, prompts, o, kSingleSequenceInputs, false));
  std::vector<Tokens> sequences = token_rows(prompts, o.batch);
  std::vector<int64_t> same(sequences.size());
  std::iota(same.begin(), same.end(), int64_t{0});
  std::vector<char> ended(sequences.size(), 0);
  std::vector<float> scores;
  const auto all_ended = [&] {
    return std::all_of(ended.begin(), ended.end(), [](char e) { return e != 0; });
  };
  for (int64_t step = 0; static_cast<int64_t>(sequences[0].size()) < o.max_length && !all_ended();
       ++step) {
    const Tensor logits = decoder->next(sequences, same);
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
  return {token_matrix(concatenate_rows(sequences), o.batch), Tensor(filtered)};
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

Values decode_beams(NodeCall& c, SearchOptions& o, const SearchInputs& inputs, Decoder& decoder,
                    const Tokens& prompts) {
  BeamSearch beams(o, repeat_rows(token_rows(prompts, o.batch), o.num_beams));
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
      ops::reshape(token_matrix(best.sequences, o.batch * o.num_return_sequences),
                   Shape{Dim(o.batch), Dim(o.num_return_sequences), Dim(o.max_length)});
  return {sequences, Tensor(scores),
          c.has_output(2) ? Value(ops::cast(steps.value().tensor(), real)) : Value()};
}

/// The start tokens of a decoder that follows an encoder.
Tokens start_tokens(const NodeCall& c, const SearchOptions& o) {
  const int32_t start = token_attribute(c, "decoder_start_token_id", -1);
  c.check(start >= 0, "decoder_start_token_id is missing");
  c.check(o.max_length > 1, "max_length is ", o.max_length);
  return Tokens(static_cast<size_t>(o.batch), start);
}

Values whisper_search(NodeCall& c, const SearchInputs& inputs) {
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
  const auto decoder = make_encoder_decoder(c, o, Tensor());
  return decode_beams(c, o, inputs, *decoder, prompts);
}

Values beam_search(NodeCall& c) {
  const int64_t model = model_type(c);
  if (model == kWhisper) return whisper_search(c, kBeamSearchInputs);
  SearchOptions o = search_options(c, kBeamSearchInputs);
  if (model == kDecoder) {
    const Tokens prompts = prompt_tokens(c, 0, o);
    const auto decoder =
        make_decoder_only(c, o, attention_mask(c, prompts, o, kBeamSearchInputs, false));
    return decode_beams(c, o, kBeamSearchInputs, *decoder, prompts);
  }
  c.check(model == kEncoderDecoder, "model_type is ", model);
  const Tensor& ids = c.tensor(0);
  c.check(ids.ndim() == 2, "the tokens must be a matrix");
  const Tokens source = tokens_input(c, 0, {o.batch, constant_dim(ids, 1)});
  const auto decoder = make_encoder_decoder(
      c, o, token_matrix(attention_mask(c, source, o, kBeamSearchInputs, true), o.batch));
  return decode_beams(c, o, kBeamSearchInputs, *decoder, start_tokens(c, o));
}

Values whisper_beam_search(NodeCall& c) {
  model_type(c);
  SearchInputs inputs = kBeamSearchInputs;
  inputs.attention_mask = SearchInputs::kNone;
  inputs.temperature = 14;
  return whisper_search(c, inputs);
}

}  // namespace

OperatorTable contrib_generation_operators() {
  static constexpr Operator operators[] = {
      {"BeamSearch", 1, beam_search},
      {"GreedySearch", 1, greedy_search},
      {"Sampling", 1, sampling},
      {"WhisperBeamSearch", 1, whisper_beam_search},
  };
  return operators;
}

}  // namespace paddle::onnx
