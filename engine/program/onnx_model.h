#pragma once
// The model of an ONNX file.

#include <memory>
#include <string>
#include <vector>

#include "program/model.h"

namespace paddle::program {

class OnnxModel final : public Model {
 public:
  OnnxModel(const std::string& path, const LoadOptions& options);

  int64_t parameter_count() const override { return session_->parameter_count(); }
  /// kData if an output is not a plain array; use the session for those.
  const std::vector<Array>& run(const std::vector<Array>& inputs) override;
  double flops(const std::vector<Array>& inputs) override;
  std::unique_ptr<Model> clone() const override;
  void set_run(int64_t run) override { session_->set_run(static_cast<uint64_t>(run)); }
  onnx::Session* onnx() const override { return session_.get(); }

 private:
  OnnxModel(const OnnxModel& other);

  std::unique_ptr<onnx::Session> session_;
  std::vector<Array> results_;
};

}  // namespace paddle::program
