#pragma once
// A Hugging Face folder in the form of a GGUF file: the key `gguf` of its family's
// `sources.huggingface` says which metadata it has and which weights change.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/document.h"
#include "convert/source.h"
#include "formats/gguf/metadata.h"
#include "llm/family.h"
#include "llm/model_files.h"

namespace paddle::llm {

/// Another order of the rows of a matrix, or of a vector's values.
enum class RowOrder : uint8_t {
  kAsIs,
  kNeighbors,  ///< halves of each head become neighbors: rotary pairs
  kThirds,     ///< queries, keys and values of each head: all queries, then keys, then values
  kGroups      ///< the same for groups of heads that share keys and values
};
/// The row that stands at each place. kModel if `rows` cannot be divided so.
std::vector<int64_t> row_order(RowOrder order, int64_t rows, int64_t heads, int64_t kv_heads);

class GgufForm {
 public:
  struct Tensor {
    std::string name;
    DType dtype = DType::kF32;  ///< that of the folder: float32, float16 or bfloat16
    Dims shape;
  };

  /// kModel for a model that its family does not write as GGUF, or that would compute something
  /// else as a GGUF file; what the constructors of its parts throw for damaged files.
  explicit GgufForm(const std::string& folder);

  const std::string& architecture() const { return architecture_; }
  /// With the architecture; without the tokenizer.
  const formats::gguf::Metadata& metadata() const { return metadata_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  int64_t vocab_size() const { return vocab_size_; }
  const std::vector<int64_t>& end_tokens() const { return files_.end_tokens; }
  /// In the tensor's dtype.
  Array read(size_t index) const;

 private:
  struct Origin {
    std::vector<size_t> parts;  ///< tensors of the folder, stacked if there are several
    bool transposed = false;
    RowOrder order = RowOrder::kAsIs;
    int64_t heads = 0, kv_heads = 0;
    float added = 0;
    Array value;  ///< without parts
  };
  void read_section(const config::Node& section, const jinja::Value& variables);
  void map_tensors(const Family& family, const std::string& rules);
  void add_tensor(const std::string& name, Origin origin, bool theirs_transposed);
  void change_tensors(const config::Node& section, const jinja::Value& variables);
  void add_frequencies(const jinja::Dict& params);
  void add_longrope(const jinja::Dict& params);
  void add_divisors(const std::string& name, const std::vector<float>& divisors);
  void check_params(const Family& family, const jinja::Dict& params) const;
  Array part(const Origin& origin, size_t index) const;

  std::string folder_;
  ModelFiles files_;
  std::string architecture_;
  formats::gguf::Metadata metadata_;
  jinja::Dict keys_;  ///< of the metadata, as expressions of a family name them
  std::vector<Tensor> tensors_;
  std::vector<Origin> origins_;
  int64_t vocab_size_ = 0, layers_ = 0;
  bool has_frequencies_ = false, has_longrope_ = false;
};

}  // namespace paddle::llm
