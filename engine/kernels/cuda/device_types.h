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

/// An unsigned type of an element's size, for copies; null for parts of a byte.
inline const char* unsigned_type(DType type) {
  if (info(type).bits < 8) return nullptr;
  switch (item_size(type)) {
    case 1:
      return "uint8_t";
    case 2:
      return "uint16_t";
    case 4:
      return "uint32_t";
    case 8:
      return "uint64_t";
    case 16:
      return "u128";
    default:
      return nullptr;
  }
}

/// True for integers that can be indices or labels.
inline bool is_index(DType type) {
  return device_type(type) && !is_float(type) && type != DType::kBool;
}

}  // namespace paddle::cuda
