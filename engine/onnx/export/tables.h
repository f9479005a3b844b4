#pragma once
// Tables of imported files: an index_select of rows of a weight is an embedding, which may count
// its rows from the end. Quantization and 16-bit types look for embeddings.

#include <memory>

#include "ir/module.h"

namespace paddle::onnx {

/// The function with such operations as embeddings.
std::unique_ptr<ir::Function> tables_as_embeddings(const ir::Function& function);

/// The indices of an embedding that tables_as_embeddings made, which may be negative; null for
/// those of others.
const ir::Value* unwrapped_indices(const ir::Value& indices);

}  // namespace paddle::onnx
