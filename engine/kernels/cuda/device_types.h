#pragma once
// Element types in the texts of device/.

#include "kernels/cuda/group_source.h"

namespace paddle::cuda {

/// The type that values of a float type are computed in: "float" or "double"; null for other types.
inline const char* compute_name(DType type) {
  if (!is_float(type) || !device_type(type)) return nullptr;
  return type == DType::kF64 ? "double" : "float";
}

/// The DType of it.
inline DType computed_as(DType type) { return type == DType::kF64 ? DType::kF64 : DType::kF32; }

/// True for integers that can be indices or labels.
inline bool is_index(DType type) {
  return device_type(type) && !is_float(type) && type != DType::kBool;
}

}  // namespace paddle::cuda
