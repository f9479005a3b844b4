#pragma once
// Values fitted to the training rows: scaling statistics, vocabularies, class lists.
// Validation, inference and every other reader of the same fields must use it. A run stores it as
// `fitted.json` in the model folder.

#include <span>
#include <string>
#include <vector>

#include "data/datasets/text_tokenizer.h"

namespace paddle::data {

/// The fitted values of one field.
struct Fitted {
  std::string field = {};
  std::vector<double> shift = {}, factor = {};  ///< per column: (x - shift) * factor
  bool log = false;                             ///< sign(x) * log(1 + |x|), before shift and factor
  std::vector<std::string> tokens = {};         ///< vocabulary, characters, or class folders
  bool bytes = false;                           ///< text whose tokens are the 256 bytes
  /// Unknown strings have id 0 and token i has id i + 1; otherwise token i has id i.
  bool unknown_is_zero = false;
  /// Of text columns: "words" or "characters", what happens to capitals, and the length at which
  /// texts are cut. Token 0 is "<unknown>".
  std::string token_kind = {};
  bool lowercase = false;
  int64_t max_length = 0;
  /// Of text in subwords, with `max_length` for columns: the tokenizer, of which a copy is stored
  /// in the folder of the file.
  TextTokenizerPtr tokenizer = {};
  bool special_tokens = false;
  /// Models written before unknown strings had an id of their own: they share id 0 with token 0.
  bool unknown_shares_zero = false;
};

/// JSON: {"version": 1, "fields": [...]}. Tokens must be UTF-8.
std::string fitted_json(std::span<const Fitted> fitted);
/// Writes it as `fitted.json` into a folder, with the tokenizers in folders next to it.
void write_fitted(const std::string& folder, std::span<const Fitted> fitted);
/// Reads what these wrote; kModel if the file is damaged or from a newer version.
std::vector<Fitted> read_fitted(const std::string& path);

/// The entry of a field, or null.
const Fitted* find_fitted(std::span<const Fitted> fitted, const std::string& field);

}  // namespace paddle::data
