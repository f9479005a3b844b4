#pragma once
// `lora:`: matrices that stay as they are, each next to a trained product of two narrow ones (Hu et
// al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021). The saved model holds the sums.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "lang/eval/host.h"
#include "optim/optimizer.h"
#include "program/parameter_store.h"
#include "train/weights/packed_base.h"

namespace paddle::train {

struct Adapters {
  int64_t rank = 8;
  double alpha = 16;  ///< the product counts alpha / rank times
  double scale() const { return alpha / static_cast<double>(rank); }
  std::vector<std::string> only = {"*.weight"};  ///< patterns of the matrices
  std::vector<std::string> also = {};  ///< patterns of parameters that are trained as well
  /// How matrices that stay as they are are kept; nothing: in float32.
  std::optional<convert::WeightType> weights_as = {};
  std::shared_ptr<const PackedBase> base = {};  ///< the file with them, if they are packed
};

config::Spec lora_spec();
std::optional<Adapters> read_adapters(const config::Section& config);
/// Freezes everything but the adapters and `also`.
std::vector<optim::ParameterGroup> adapter_groups(const Adapters& adapters);

/// Gives the sum of a matrix and its adapter where the model asks for the matrix.
class AdaptedParameters final : public lang::ParameterProvider {
 public:
  /// Both must outlive this object.
  AdaptedParameters(lang::ParameterProvider& outer, const Adapters& adapters)
      : outer_(outer), adapters_(adapters) {}
  Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                   const lang::Initializer& init) override;
  Tensor state(const std::string& path, const Dims& shape, DType dtype,
               const lang::Initializer& init, lang::StateScope scope) override {
    return outer_.state(path, shape, dtype, init, scope);
  }
  void update(const std::string& path, const Tensor& value) override { outer_.update(path, value); }
  Tensor table_rows(const std::string& path, const Tensor& keys, int64_t width, DType dtype,
                    const lang::Initializer& init, const Tensor& mask) override {
    return outer_.table_rows(path, keys, width, dtype, init, mask);
  }
  DType stored_dtype(DType declared) const override { return outer_.stored_dtype(declared); }
  DType stored_dtype(const std::string& path, DType declared) const override {
    return outer_.stored_dtype(path, declared);
  }
  bool is_frozen(const std::string& path) const override { return outer_.is_frozen(path); }
  int64_t static_value(const Dim& dim) override { return outer_.static_value(dim); }
  /// The packed matrices that the model has asked for.
  const std::vector<PackedOperand>& packed() const { return packed_; }

 private:
  lang::ParameterProvider& outer_;
  const Adapters& adapters_;
  std::vector<PackedOperand> packed_;
};

/// How a matrix of the model is kept, if its rows are packed.
std::optional<PackedMatrix> packed_matrix(const Adapters& adapters, const std::string& name);

/// Names of the adapters' matrices, by name of the matrix that they belong to; kConfig if there are
/// none.
std::vector<std::string> adapted(const program::ParameterStore& store, const Adapters& adapters);
/// Whether this is the name of such a matrix, lora_down or lora_up of another.
bool is_adapter(const std::string& name);
/// Names of the two matrices of an adapter: [features, rank] and [rank, columns].
std::string lora_down(const std::string& matrix);
std::string lora_up(const std::string& matrix);
/// Replaces each matrix by its sum with its adapter, which is taken out of the store, and packed
/// rows by their matrices in float32.
void merge_adapters(program::ParameterStore& store, const Adapters& adapters);
/// Gives packed rows the type and shape of their matrices, without values, for a trace.
void unpack_types(program::ParameterStore& store, const Adapters& adapters);
/// The adapters only, as a safetensors file.
void write_adapters(const std::string& file, const program::ParameterStore& store,
                    const Adapters& adapters);

}  // namespace paddle::train
