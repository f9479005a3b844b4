#pragma once
// The files of a checkpoint whose sizes and checksums are kept.

namespace paddle::program {

inline constexpr const char* kCheckedFiles[] = {"config.yaml", "module.txt", "model.safetensors",
                                                "optimizer.safetensors"};

}  // namespace paddle::program
