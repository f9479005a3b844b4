// Rules of files.yaml.

#include "ops/generated/vision.h"
#include "ops/generated/vision_rules.h"

namespace paddle::rules {

void infer_read_file(InferContext& c) {
  c.check(!c.attrs_as<ReadFileAttrs>().filename.empty(), "filename must not be empty");
  c.result(DType::kU8, {c.run_time_dim()});
}

void infer_decode_jpeg(InferContext& c) {
  c.check(c.rank(0) == 1, "x must be 1-D, not ", c.type(0));
  const std::string mode = c.attrs_as<DecodeJpegAttrs>().mode;
  const Dim channels = mode == "gray" ? Dim(1) : mode == "rgb" ? Dim(3) : c.run_time_dim();
  const Dim height = c.run_time_dim(), width = c.run_time_dim();
  c.result(DType::kU8, {channels, height, width});
}

}  // namespace paddle::rules
