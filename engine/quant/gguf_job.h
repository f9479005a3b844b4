#pragma once
// Writes a GGUF file whose matrices are of one type: blocks with the bytes of ggml's plain rule or
// with searched scales, or 16-bit floats. It comes from another one, whose metadata with the
// tokenizer is kept, or from a Hugging Face folder.

#include <string>
#include <vector>

#include "formats/gguf/quantize.h"
#include "quant/progress.h"

namespace paddle::quant {

struct GgufJob {
  std::string model, output;            ///< a file or a folder, and a file
  std::string type;                     ///< "q4_0"; one of gguf_scheme_names()
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
  std::vector<std::string> notes;  ///< parts of the model that the output lacks, a line each
  uint64_t bytes_before = 0, bytes_after = 0;
};

/// The types of blocks, and "float16" and "bf16".
std::vector<std::string> gguf_scheme_names();
/// Matrices whose rows fill whole blocks are quantized; vectors stay, and matrices that choose
/// experts. kConfig for a pattern that matches nothing, kModel for values beyond float16 and a
/// folder that cannot be a GGUF file. With `dry_run` nothing is written.
GgufReport quantize_gguf(const GgufJob& job, bool dry_run, const Progress& progress);
/// One line, or several.
std::string gguf_report_json(const GgufJob& job, const GgufReport& report);

}  // namespace paddle::quant
