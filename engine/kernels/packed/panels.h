#pragma once
// Panels of packed weights: groups of 16 rows (columns of the product), each in the order in which
// the loops read it.
//
//   float, bfloat   [features][16]
//   integers        per unit of 32 features: scales [16], minimums [16], quants [8][16][4], where
//                   vectors of 4-bit quants hold group i in the low and i + 4 in the high bits;
//                   super formats have float16 [16] scales (and minimums) in front of eight units

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/packed/unpack.h"
#include "tensor/dtype.h"

namespace paddle::cpu {

constexpr int64_t kPanelColumns = 16, kUnit = 32, kUnitsOfSuper = 8;

struct PanelLayout {
  DType floats = DType::kF32;              ///< of float panels: f32 or bf16
  const UnpackedFormat* packed = nullptr;  ///< null for float panels
  int64_t features = 0, columns = 0;
  size_t group_bytes = 0;

  int64_t groups() const { return (columns + kPanelColumns - 1) / kPanelColumns; }
  size_t bytes() const { return group_bytes * static_cast<size_t>(groups()); }
  int64_t units() const { return features / kUnit; }
};

/// `format` as in packed_linear; `dtype` is the weight's.
PanelLayout panel_layout(std::string_view format, DType dtype, int64_t features, int64_t columns);
/// A group of an integer panel with quants in 16 bits and scales in f32: words [features /
/// 2][16][2], scales [units][16] (per half unit where the format has them), minimums [units][16].
inline size_t widened_bytes(const PanelLayout& layout) {
  return static_cast<size_t>(layout.features * kPanelColumns) * sizeof(int16_t) +
         static_cast<size_t>(3 * layout.units() * kPanelColumns) * sizeof(float);
}
/// Packs rows of `row_bytes` bytes in the weight's format. Parallel.
void pack_panels(const PanelLayout& layout, DType dtype, const std::byte* rows, int64_t row_bytes,
                 std::byte* panels);

/// Rows of x, quantized by units: x ≈ scales * values, or scales * (128 * values + low) in 16 bits.
struct QuantizedRows {
  const int8_t* values;  ///< [rows][features]
  const int8_t* low;     ///< [rows][features], or null
  const int16_t* words;  ///< [rows][features]: 128 * values + low, for multiply_words; or null
  const float* scales;   ///< [rows][units]
  /// [rows][units][2]: −offset * sum of the integers, which products with quants add; of each half
  /// for scales per 16, else of both in the first.
  const int32_t* corrections;
  const float* totals;  ///< [rows][units]: scale * sum
};

/// Products of a tile of rows with a group of a panel (or several, for floats).
struct TileProduct {
  const PanelLayout* layout;
  const std::byte* panels;  ///< of the first group; or the weight's rows as they are stored
  int64_t row_bytes;        ///< of the weight's rows; 0: panels
  int64_t groups;
  const float* x;  ///< float panels: rows of `features`
  QuantizedRows quantized;
  int64_t rows;
  const float* bias;  ///< of the first group; may be null
  float* out;         ///< of the first row and group
  int64_t pitch;      ///< row stride of out
  int64_t columns;    ///< valid ones from the first group on
};

struct PackedLoops {
  const char* name;
  /// All rows with consecutive groups. The sums of a row do not depend on the other rows.
  void (*multiply)(const TileProduct& product);
  /// The same sums for activations in words and integer panels, faster where many rows share the
  /// quants, which are widened into `scratch` (widened_bytes). Null where `multiply` is as fast.
  /// Takes rows of stored weights too, in formats of reads_rows.
  void (*multiply_words)(const TileProduct& product, std::byte* scratch);
  /// Whether weights in `format` are multiplied as they are stored, which needs words and no
  /// panels; null: none.
  bool (*reads_rows)(const UnpackedFormat& format);
  /// The same sums from rows of stored weights, for few rows of x.
  void (*multiply_rows)(const TileProduct& product);
  /// Quantizes one row for products with weights in `format`; `low` is null for 8 bits.
  void (*quantize)(const UnpackedFormat& format, const float* x, int64_t units, int8_t* values,
                   int8_t* low, float* scales, int32_t* corrections, float* totals);
};
/// For the best instruction set that is allowed.
const PackedLoops& packed_loops();

}  // namespace paddle::cpu
