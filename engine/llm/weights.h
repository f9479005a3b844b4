#pragma once
// The weights of a language model's files by the names of its family.

#include <map>
#include <memory>
#include <string>

#include "convert/packed_weights.h"
#include "llm/model_files.h"
#include "tensor/tensor.h"

namespace paddle::llm {

using convert::PackedWeight;
using convert::WeightType;

/// From "as-is", "int8" or "int4"; kUsage for another word.
WeightType weight_type(const std::string& word);

class Weights {
 public:
  /// `unpacks`: blocks become floats.
  Weights(const ModelFiles& files, const std::string& rules, std::string path, bool unpacks,
          WeightType type = WeightType::kAsIs);

  /// float32; kModel if there is none, or it has another shape.
  Array read(const std::string& name, const Dims& shape);
  /// The rows of a matrix [rows, features] in the mapped file where its format allows, or their
  /// transpose, [features, rows], with `transposed`.
  PackedWeight read_packed(const std::string& name, const Dims& shape, bool transposed);
  /// kModel if the model has no weight of this name.
  void check_present(const std::string& name) const;
  /// kModel for a weight that was not asked for.
  void check_all_used() const;

 private:
  struct Entry {
    size_t index = 0;
    bool transposed = false, used = false;
    int64_t part = -1, parts = 0;  ///< a matrix of a tensor of `parts` matrices
  };
  void add(const std::string& name, const Entry& entry);
  Entry& find(const std::string& name);
  Dims shape_of(const Entry& entry) const;
  Array value_of(const Entry& entry) const;
  formats::gguf::TensorInfo blocks_of(const Entry& entry) const;
  void check_shape(const Entry& entry, const Dims& found, const Dims& wanted) const;

  std::shared_ptr<const convert::Source> source_;
  std::shared_ptr<const formats::gguf::Reader> gguf_;
  std::string path_;
  bool unpacks_;
  WeightType type_;
  std::map<std::string, Entry> index_;
};

}  // namespace paddle::llm
