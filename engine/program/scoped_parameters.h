#pragma once
// The parameters and states of one model among several: their paths begin with the model's name.

#include <string>
#include <utility>

#include "lang/eval/host.h"

namespace paddle::program {

class ScopedParameters final : public lang::ParameterProvider {
 public:
  /// `outer` must outlive this object. `scope` is "" or the name of a model.
  ScopedParameters(lang::ParameterProvider& outer, const std::string& scope)
      : outer_(outer), prefix_(scope.empty() ? "" : scope + ".") {}

  Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                   const lang::Initializer& init) override {
    return outer_.parameter(prefix_ + path, shape, dtype, init);
  }
  Tensor state(const std::string& path, const Dims& shape, DType dtype,
               const lang::Initializer& init, lang::StateScope scope) override {
    return outer_.state(prefix_ + path, shape, dtype, init, scope);
  }
  void update(const std::string& path, const Tensor& value) override {
    outer_.update(prefix_ + path, value);
  }
  Tensor table_rows(const std::string& path, const Tensor& keys, int64_t width, DType dtype,
                    const lang::Initializer& init, const Tensor& mask) override {
    return outer_.table_rows(prefix_ + path, keys, width, dtype, init, mask);
  }
  DType stored_dtype(DType declared) const override { return outer_.stored_dtype(declared); }
  DType stored_dtype(const std::string& path, DType declared) const override {
    return outer_.stored_dtype(prefix_ + path, declared);
  }
  bool is_frozen(const std::string& path) const override {
    return outer_.is_frozen(prefix_ + path);
  }
  int64_t static_value(const Dim& dim) override { return outer_.static_value(dim); }

 private:
  lang::ParameterProvider& outer_;
  std::string prefix_;
};

}  // namespace paddle::program
