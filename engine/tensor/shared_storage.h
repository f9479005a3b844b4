#pragma once
// Storage that other packages hold as well, such as the memory of a NumPy array.

#include "tensor/tensor.h"

namespace paddle {

/// Notes that others may write the bytes of a storage, so that its value cannot be assumed to stay.
void share(const std::shared_ptr<Storage>& storage);
/// The same, and in-place writes to tensors with the storage write its bytes (Tensor::assign),
/// where they put new storage into other tensors.
void share_writable(const std::shared_ptr<Storage>& storage);

bool is_shared(const Array& array);
bool is_shared_writable(const Array& array);
/// The same of a tensor's content, which may be null or not be known. Values that are computed only
/// when they are asked for stay so as long as no storage is writable.
bool is_shared_writable(const Content* content);

/// Copies the elements into the memory of an array of the same dtype and shape. Both may be windows
/// of one storage. For arrays on the host.
void copy_elements(const Array& from, const Array& to);

}  // namespace paddle
