#pragma once
// A low-rank adapter in PEFT's files next to the matrices of a loaded model, whatever format these
// have: x Wᵀ + scale (x Aᵀ) Bᵀ.

#include <map>
#include <string>

#include "formats/peft.h"
#include "llm/family.h"
#include "tensor/tensor.h"

namespace paddle::llm {

class Adapter {
 public:
  /// kModel for an adapter that is more than products of two matrices.
  Adapter(const std::string& folder, const Family& family);

  struct Factors {
    Array down;  ///< A: float32 [rank, features]
    Array up;    ///< scale B: float32 [rows, rank]
  };
  /// For a matrix of the family with this name, which multiplies `features` values by `rows` rows;
  /// null if it has none.
  const Factors* find(const std::string& name, int64_t rows, int64_t features);
  /// kModel for a part that no matrix took.
  void check_all_used() const;

 private:
  formats::PeftAdapter files_;
  std::map<std::string, std::string> names_;  ///< of the adapter, by those of the family
  std::map<std::string, Factors> factors_;    ///< those that were asked for
  std::string reordered_;                     ///< an expression for names, see Family
  int64_t head_ = 0;
};

/// "DIR" or "NAME=DIR" of the option --adapter.
struct AdapterOption {
  std::string name, folder;
};
AdapterOption read_adapter_option(const std::string& text);

}  // namespace paddle::llm
