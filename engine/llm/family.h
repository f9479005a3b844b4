#pragma once
// A family of models: a model file whose section `sources` says how keys of config.json or of
// GGUF's metadata become its params, and which rules rename the weights.

#include <functional>
#include <string>
#include <vector>

#include "llm/model_files.h"
#include "llm/sequence_memory.h"

namespace paddle::llm {

struct Family {
  std::string file;                    ///< the model file
  bool is_given = false;               ///< the user has named it
  std::string rules;                   ///< the file of rules for the weights' names
  std::vector<std::string> overrides;  ///< of params
  /// The rules for the names of Hugging Face's weights, which those of adapters are; empty if it
  /// has none.
  std::string adapter_rules;
  /// In these files the rows of matrices whose name this expression matches are ordered so that
  /// rotary pairs are neighbors, in heads of `reordered_head` rows; 0: in none.
  std::string reordered;
  int64_t reordered_head = 0;
  int64_t context = 0;         ///< tokens of a text; 0: that of the files
  bool takes_context = false;  ///< a param `cache_context`, which the program sets
  /// The kinds of caches whose states match a pattern; the first match counts, others are kTokens.
  std::vector<SequenceMemory> memory;
  bool has_embed = false;  ///< hidden values of texts
  bool has_step = false;   ///< a function `step` that caches keys and values
};

/// The family of the model: the model file `family`, or where that is empty the one among those
/// that come with the programs that names the model's type. kModel for a type or a key that it does
/// not know.
Family find_family(const ModelFiles& files, const std::string& family);

/// Builds a model of a family that comes with the programs: what is wrong then is not its file, but
/// what `config`, the file of the user, says. Its errors are kModel and name this file.
void build_model(const Family& family, const std::string& config,
                 const std::function<void()>& build);

}  // namespace paddle::llm
