#pragma once
// Quantizes the weights of a GGUF file to a type of blocks, with the bytes of ggml's plain rule or
// with searched scales. Its metadata, which holds the tokenizer, is kept.

#include <string>
#include <vector>

#include "formats/gguf/quantize.h"
#include "quant/progress.h"

namespace paddle::quant {

struct GgufJob {
  std::string model, output;            ///< files
  std::string type;                     ///< "q4_0"; one of formats::gguf::block_type_names()
  std::vector<std::string> keep_float;  ///< patterns of tensors that stay as they are
  bool overwrite = false;
  formats::gguf::BlockScales scales = formats::gguf::BlockScales::kPlain;
};

struct GgufTensor {
  std::string name, before, after;  ///< types
  double sqnr_db = 0;               ///< of a tensor whose type changed
  std::string why;                  ///< it stays
};

struct GgufReport {
  std::vector<GgufTensor> tensors;
  uint64_t bytes_before = 0, bytes_after = 0;
};

/// Matrices whose rows fill whole blocks are quantized; vectors stay. kConfig for a pattern that
/// matches nothing. With `dry_run` nothing is written.
GgufReport quantize_gguf(const GgufJob& job, bool dry_run, const Progress& progress);
/// One line, or several.
std::string gguf_report_json(const GgufJob& job, const GgufReport& report);

}  // namespace paddle::quant
