#pragma once
// Decoder subgraphs of the text generation operators, and the key-value caches between their calls.

#include <memory>
#include <string_view>
#include <vector>

#include "decoding/search_options.h"
#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// Tokens as a matrix [rows, tokens.size() / rows].
Tensor token_matrix(const decoding::Tokens& tokens, int64_t rows);
std::vector<decoding::Tokens> token_rows(const decoding::Tokens& tokens, int64_t rows);
/// Each row `times` times.
std::vector<decoding::Tokens> repeat_rows(const std::vector<decoding::Tokens>& rows, int64_t times);
decoding::Tokens concatenate_rows(const std::vector<decoding::Tokens>& rows);
/// Repeats each sample along axis 0 for its beams.
Tensor repeat_for_beams(const Tensor& x, int64_t beams);

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Logits [rows or samples, steps, vocabulary] after `sequences`; `from` holds the row of the
  /// previous call that each row extends.
  virtual Tensor next(const std::vector<decoding::Tokens>& sequences,
                      const std::vector<int64_t>& from) = 0;
};

/// A decoder with signature input_ids, position_ids, attention_mask, past_0, …[,
/// past_sequence_length] -> logits, present_0, …. `mask` is the attention mask of the prompts.
std::unique_ptr<Decoder> make_decoder_only(const NodeCall& c,
                                           const decoding::SearchOptions& options,
                                           const decoding::Tokens& mask);

/// An encoder that also runs the first decoder step, or only returns keys and values; then a
/// decoder input_ids[, encoder_attention_mask][, encoder_hidden_states], past_*_self…,
/// past_*_cross…[, past_sequence_length] -> logits, present_*_self…. `mask` may be undefined.
std::unique_ptr<Decoder> make_encoder_decoder(const NodeCall& c,
                                              const decoding::SearchOptions& options, Tensor mask);

}  // namespace paddle::onnx
