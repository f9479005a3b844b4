#pragma once
// paddle-quant of a Hugging Face folder or a GGUF file: a GGUF file of another type.

#include "quant_options.h"

namespace paddle::cli {

/// Whether the options ask for a GGUF file.
bool writes_gguf(const QuantOptions& options);
/// Writes it, or with `dry_run` says what it would have. Returns the exit status.
int run_gguf(const QuantOptions& options, bool dry_run);

}  // namespace paddle::cli
